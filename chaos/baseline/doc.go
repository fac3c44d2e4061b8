// Package baseline holds the ways in which others enforce one limit over several
// regions, so that quotad can be compared with them on the same requests.
//
// A [System] is offered a [workload.Workload] over a [Network] and says what it
// admitted ([Result]); [Measure] turns that into [Figures], and [Compare] does so
// for many of both. [Systems] are:
//
//	static split         each region has its entitlement, and no more
//	pooled oracle        one limiter without latency: the best there could be
//	central bucket       one limiter in one region, which all others ask
//	eventual counters    regions tell each other every 5 s what they admitted
//	coordinator          a leader divides the limit anew every 10 s
//	global random drop   every region drops the part that is too much, at random
//	flow-proportional    every region takes the part of the limit that its demand deserves
//
// All of them enforce the workload's own algorithm where they have a limiter at
// all; what differs is how the limit is divided. Where a published design leaves a
// choice, the one that is better for it was taken, and its doc comment says so.
//
// The package is pure: no clock and no goroutine, and it writes nowhere but to what
// it is given. What a system does, and every figure, follows from the arguments and
// is the same on every machine: all arithmetic is in integers.
package baseline
