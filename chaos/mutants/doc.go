// Package mutants holds, for each rule that keeps the ceiling or the use of a limit, the same program without that rule.
//
// A mutant is a small patch of production source, compiled in by "go build -overlay": production code holds no switches.
// The simulator (quotad simulate) built from a mutant must find a violation within a stated number of seeds; if it does
// not, the rule is not needed or the simulator is blind, and either is to be mended.
//
// mutant.go applies and builds one. holes.go lists the holes that rules were made for, and says of those without a mutant
// why. ledger.go, arithmetic.go, time.go, loss.go, recovery.go, documents.go, local.go and dynamics.go hold the mutants,
// by the holes they open again.
//
// An edit must find its old text exactly once in its file. A test of this package applies them all, so that whoever
// changes a rule meets the mutant that is its proof.
package mutants
