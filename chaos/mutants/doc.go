// Package mutants holds, for each rule that keeps the ceiling or the use of a limit, the same program without that rule.
//
// A mutant is a small patch of production source, compiled in by "go build -overlay": production code holds no switch that
// turns a rule off. (What exchange.Options turn off is of use, not a rule: the ceiling holds without hints and lending.)
// The simulator (quotad simulate) built from a mutant must find a violation within a stated number of seeds; if it does
// not, the rule is not needed or the simulator is blind, and either is to be mended.
//
// mutant.go applies and builds one. holes.go lists the holes that rules were made for, and says of those without a mutant
// why. ledger.go, arithmetic.go, time.go, loss.go, recovery.go, documents.go, local.go and dynamics.go hold the mutants,
// by the holes they open again.
//
// What a mutant breaks is said by these names; "quotad simulate" checks most of them after every event, by the finer ones
// of chaos/sim/doc.go:
//
//	conservation  the shares of all regions add up to the limit at most; nobody counts more than was given
//	local         no region uses more than its share, and a request is charged once
//	ceiling       what all regions admit, judged from outside, stays within the limit and the printed bounds
//	order         rows, epochs, generations and times of a store never go back
//	fallback      a region that is cut off from all others comes to its fixed split
//	liveness      once all faults are over everything works again, and what was used for them is given back
//	use           the limit is made use of: few false denials, few messages, no rights moved in vain
//
// An edit must find its old text exactly once in its file. A test of this package applies them all, so that whoever
// changes a rule meets the mutant that is its proof.
package mutants
