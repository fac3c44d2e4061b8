// Package mutants holds, for each rule that keeps the ceiling or the use of a limit, the same
// program without that rule.
//
// A mutant is a small patch of production source, compiled in by "go build -overlay". Production
// code has no switch that turns off a rule. (exchange.Options turns off hints, lending and the
// like, which concern the use of a limit; the ceiling holds without them.) The simulator (quotad
// simulate) built from a mutant must find a violation within a stated number of seeds. If it does
// not, either the rule is not needed or the simulator does not see its violation, and one of the
// two must be corrected.
//
// The mutants are in testdata, in a file for each kind of hole that they open again. holes_test.go lists
// the holes that rules were made for, and says why some have no mutant. load.go reads the mutants,
// mutant.go applies and builds one, run.go looks for it. A file begins with what it is about. A
// mutant is written as
//
//	-- its-name --
//	hole: one of holes
//	rule: the missing rule
//	breaks: the invariant that should break, and a description
//	under: the faults that it needs
//	says: what must be found, as a regular expression
//	flags: those of chaos/mutants/seeds that make the faults likely, if any
//	within: the number of seeds in which it must be found; or test: PACKAGE FUNCTION
//	-- old FILE --
//	the text to replace, of one line or more
//	-- new --
//	what comes in its place
//
// with an old and a new text for each edit. Empty lines at the end of a text are no part of it.
//
// A mutant names what it breaks by the following invariants. "quotad simulate" checks most of them
// after every event, under the finer names of chaos/play/sim/doc.go:
//
//	conservation  the shares of all regions add up to at most the limit; no region counts
//	              more than it was given
//	local         no region uses more than its share, and a request is charged once
//	ceiling       what all regions admit, judged from outside, stays within the limit and
//	              the printed bounds
//	order         rows, epochs, generations and times of a store never go back
//	fallback      a region that is cut off from all others comes to its fixed split
//	liveness      once all faults are over everything works again, and the memory and
//	              storage that they used is released
//	use           the limit is used well: few false denials, few messages, no rights moved
//	              in vain
//
// The old text of an edit must occur exactly once in its file. A test of this package applies all
// edits, so that whoever changes a rule finds the mutant that proves it.
package mutants
