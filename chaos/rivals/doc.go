// Package rivals implements the ways in which others enforce one limit over several regions, so
// that quotad can be compared with them on the same requests.
//
// A [System] is offered a [workload.Workload] over a [Network] and returns what it admitted
// ([Result]). [Measure] computes [Figures] from that, and [Compare] does so for many workloads and
// systems. [Systems] are:
//
//	static split         each region has its entitlement, and no more
//	pooled oracle        one limiter without latency: the best possible
//	central bucket       one limiter in one region, which all others ask
//	eventual counters    regions tell each other every 5 s what they admitted
//	coordinator          a leader divides the limit anew every 10 s
//
// All that have a limiter enforce the workload's own algorithm. They differ in how the limit is
// divided. Where a published design leaves a choice, the choice that is better for the design was
// taken, and its doc comment says so.
//
// The package is pure: it has no clock and no goroutine, and writes only to what it is given. What
// a system does, and every figure, follows from the arguments and is the same on every machine,
// because all arithmetic is in integers.
package rivals
