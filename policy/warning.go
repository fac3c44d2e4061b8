package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// Warning is about a part of a valid document that probably does less, or more, than its author
// intended. Its Problem says what the part does, and why.
type Warning strictyaml.Error

// String returns the warning on one line, in the form of [strictyaml.Error].
func (w Warning) String() string { return (*strictyaml.Error)(&w).Error() }

// Warnings returns what is valid but worth a second look, in the order of the file: all of it, or
// some 500 warnings if there are more. They are not part of the epoch.
func (d *Document) Warnings() []Warning { return slices.Clone(d.warnings) }

// warn sets the warnings of a valid document from its entries.
func (d *Document) warn(entries []source) {
	for _, e := range entries {
		if len(d.warnings) >= strictyaml.MaxErrors {
			break
		}
		d.warnings = append(d.warnings, e.warnings()...)
	}
	slices.SortStableFunc(d.warnings, func(a, b Warning) int { return a.Pos.Compare(b.Pos) })
	d.warnings = d.warnings[:min(len(d.warnings), strictyaml.MaxErrors)]
}

func (s source) warnings() []Warning {
	var found []Warning
	for _, check := range []func(source) []Warning{homeMode, unbounded, reserved, neverBorrows, impatient,
		shortCells, meantPeriod, unassigned, keepsWhileOwing} {
		found = append(found, check(s)...)
	}
	return found
}

// warning returns a warning at one field of the entry, in a list of its own.
func (s source) warning(name, text, mend string) []Warning {
	at := s.object.At(name)
	return []Warning{{Pos: at.Pos(), Path: at.Path(), Problem: text, Mend: mend}}
}

// homeMode warns of amounts too small to be split between the regions.
func homeMode(s source) []Warning {
	if !s.Home() {
		return nil
	}
	least := s.leastSplit()
	field, units, raise := "limit", s.Limit.Limit, "limit"
	switch _, given := s.object.Field("burst"); {
	case s.Limit.Limit >= least:
		field, units, raise = "burst", s.Burst, "burst"
	case given && s.Burst < least:
		raise = "limit and burst"
	}
	text := fmt.Sprintf("home mode: a %s of %d is too small to split between %d regions, so the home region of each key has it all, "+
		"the others borrow one by one, and on a partition only the home region serves", field, units, s.entitled())
	if s.Algorithm == LeakyBucket {
		text += "; regions other than the home cannot queue anything at all"
	}
	return s.warning(field, text, fmt.Sprintf("raise %s to at least %d, or give fewer regions a weight above 0", raise, least))
}

// unbounded warns of the only failure behaviour whose excess has no bound.
func unbounded(s source) []Warning {
	if s.OnStoreFailure != StoreFailureAllow {
		return nil
	}
	return s.warning("on_store_failure",
		"allow has no bound: while the store cannot be used, every request is admitted",
		"use local, which admits part of the region's fixed split, or deny")
}

// reserved warns of a reserve that is ignored, that leaves the stores next to
// nothing, or that is too small to be kept.
func reserved(s source) []Warning {
	n := s.entitled()
	least, words := n, "one unit"
	if s.Algorithm != FixedWindow { // with the other algorithms, a node admits half
		least, words = 2*n, "two units"
	}
	units := s.Limit.Limit
	if s.Algorithm.Bucket() {
		units = min(units, s.Burst)
	}
	switch r := s.LocalReserve; {
	case r == 0:
		return nil
	case s.Home():
		return s.warning("local_reserve", "home mode ignores local_reserve: each key's home region lends all it has, and a node without its store admits nothing",
			"remove local_reserve, or raise the limit until it is split")
	case r == PPMOne:
		return s.warning("local_reserve", "a local_reserve of 1 leaves the stores nothing: as long as they can be used, every request is denied",
			"write at most 0.5")
	case r > PPMOne/2:
		return s.warning("local_reserve", fmt.Sprintf("a local_reserve of %s leaves the stores less than it keeps from them: most of the limit serves only nodes that cannot use their store", r),
			"write at most 0.5")
	case below(units, PPMOne-r, s.leastSplit()):
		return s.warning("local_reserve", fmt.Sprintf("a local_reserve of %s leaves the stores less than two units for each of %d regions, so that some have nothing to lend", r, n),
			"write a smaller local_reserve, or a larger limit and burst")
	case below(units, r, least):
		return s.warning("local_reserve", fmt.Sprintf("a local_reserve of %s of %d comes to less than %s for each of %d regions: some admit nothing at all without their store", r, units, words, n),
			"write a larger local_reserve, or a larger limit and burst")
	}
	return nil
}

// below reports whether a fraction above 0 of units, not rounded, is less than least. least is at
// most 2 * MaxRegions.
func below(units quantity.Units, fraction PPM, least quantity.Units) bool {
	return least > 0 && units <= (least*quantity.Units(PPMOne)-1)/quantity.Units(fraction)
}

// neverBorrows warns of entries that ask for borrowing and forbid it.
func neverBorrows(s source) []Warning {
	if s.OnExhausted != ExhaustedBorrow {
		return nil
	}
	var found []Warning
	never := func(field, does string) {
		found = append(found, s.warning(field, fmt.Sprintf("on_exhausted: borrow can never borrow, for with %s 0 no region may %s", field, does),
			fmt.Sprintf("raise %s, or write on_exhausted: deny", field))...)
	}
	if s.BorrowingLimit == 0 {
		never("borrowing_limit", "hold borrowed rights")
	}
	if s.LendingLimit == 0 {
		never("lending_limit", "lend any")
	}
	return found
}

// impatient warns of requests that wait for another region.
func impatient(s source) []Warning {
	never := len(neverBorrows(s)) > 0
	if !s.Borrows() || s.entitled() < 2 || never {
		return nil
	}
	waits, enough := "1.5", "two"
	if s.Algorithm == TokenBucket {
		waits, enough = "three", "four"
	}
	return s.warning("on_exhausted",
		"a request that borrows waits for up to "+waits+" round trips between regions: callers who give up before, as Envoy does after 20ms by default and the Go client after 100ms, may be charged for what they then pass or deny by themselves",
		"write on_exhausted: deny, or give callers a timeout of "+enough+" round trips between regions, as the proxies' recipes do with 1s")
}

// usualClockDifference is a difference that the clocks of regions are not expected to exceed.
const usualClockDifference = time.Second

// shortCells warns of cells that may be over in one region before they begin in
// another.
func shortCells(s source) []Warning {
	if s.Cell() >= usualClockDifference || len(s.Weights) < 2 {
		return nil
	}
	cell := FormatWindow(s.Cell())
	return s.warning("window",
		fmt.Sprintf("cells of %s are short: with cells shorter than the regions' clock difference nothing can be borrowed", cell),
		fmt.Sprintf("use a window of at least %s, or keep the clocks of the regions' stores within %s", FormatWindow(usualClockDifference), cell))
}
