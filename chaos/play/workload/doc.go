// Package workload makes the demand that a simulation offers to a limit: in which region requests
// are made, when, and for how many units.
//
// A [Workload] is plain data: a limit, its regions, and every request in order of time. It can be
// drawn from a seed by name ([Make], [Names]), be one of a set for comparisons ([Suite]), or be made
// of [Piece] values by hand ([Draw]).
//
// The package is pure, and its results are the same on every machine: it reads no clock, all
// randomness comes from the seed, and all arithmetic is in integers. Poisson arrivals are usually
// computed with a logarithm; here the exponential gaps come from comparisons of random numbers
// alone (random.go).
//
// Times are microseconds since the start of the run, which is the beginning of window 0. Rates are
// thousandths of a unit per second.
package workload
