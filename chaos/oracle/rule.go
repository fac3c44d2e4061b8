package oracle

import (
	"maps"
	"slices"
	"strings"
)

// algorithm is what one kind of limit means to the judge. Adding a kind is
// adding an entry to the table below.
type algorithm struct {
	// cellOf is the cell to which a decision of this store time (µs) belongs.
	cellOf func(l Limit, at int64) int64
	// burst says whether it is the limit's Burst that bounds a tally, and not
	// its Limit.
	burst bool
	// memory is how long, in µs, an admission may weigh on later ones, or 0 if no
	// longer than its cell. False denials are netted over stretches of it.
	memory func(l Limit) int64
	// newCeiling makes the check of one bucket.
	newCeiling func(l Limit) ceiling
	// newPool makes the pooled limiter of one bucket.
	newPool func(l Limit) pool
	// exceeded says in words how a tally is above the bound; units is what it
	// counts of admissions, old ones in full.
	exceeded func(l Limit, t tally, units int64) string
	// measured is what a tally counts and the bound is, in words that fit
	// between the two numbers.
	measured string
}

// bound is what no tally may exceed, in units.
func (a algorithm) bound(l Limit) int64 {
	if a.burst {
		return l.Burst
	}
	return l.Limit
}

// ceiling collects what one bucket admitted and finds where it was too much. It
// must not depend on the order in which answers arrive.
type ceiling interface {
	// answered takes an answer of known outcome; admitted is its cost, or 0 for
	// a denial.
	answered(a Answer, admitted int64)
	// unknown takes a request that may have been admitted at any store time
	// from..to (µs).
	unknown(a Answer, from, to int64)
	// tallies returns what was found, in the order of time.
	tallies() []tally
	// counted returns the admissions that a tally of the last call of tallies
	// counts, by region and in full, and how much of them is of unknown outcome.
	counted(t tally) (regions map[string]int64, unknown int64)
}

// tally is the worst of one cell: what the limit bounds there, in units, rounded
// up. For a fixed window it is what the cell admitted, and for the other kinds
// the highest level of its meter right after an admission in the cell.
type tally struct {
	cell int64
	// all is with unknown outcomes counted as admitted when it is worst, known
	// without them.
	all, known int64
	// at is the instant of all, and since that of the earliest admission that
	// could count in it (µs); both are 0 for a fixed window.
	at, since int64
}

// pool is one limiter that owns the whole limit of one bucket. It is offered
// requests in the order of their store time, but must bear a late one.
type pool interface {
	// offer says whether the pool admits the request, and charges it if so.
	offer(cell, at, cost int64) bool
	// clone returns a copy that shares nothing.
	clone() pool
}

// algorithms are the kinds of limit that can be judged, by their policy name.
var algorithms = map[string]algorithm{
	"fixed_window": {
		cellOf: windowOf, memory: noMemory, newCeiling: newWindowCeiling, newPool: newWindowPool,
		exceeded: windowExceeded, measured: "admitted on a limit of",
	},
	"sliding_window_counter": {
		cellOf: windowOf, memory: windowLength, newCeiling: newCounterCeiling, newPool: newCounterPool,
		exceeded: counterExceeded, measured: "estimated on a limit of",
	},
	"sliding_window_log": {
		cellOf: logCellOf, memory: windowLength, newCeiling: newLogCeiling, newPool: newLogPool,
		exceeded: logExceeded, measured: "admitted in an interval on a limit of",
	},
	"token_bucket": {
		cellOf: sliceOf, burst: true, memory: drainTime, newCeiling: newTokenCeiling, newPool: newTokenPool,
		exceeded: tokenExceeded, measured: "tokens missing from a bucket of",
	},
	"leaky_bucket": {
		cellOf: queueCellOf, burst: true, memory: drainTime, newCeiling: newQueueCeiling, newPool: newQueuePool,
		exceeded: queueExceeded, measured: "units waiting in a queue of",
	},
}

// noMemory is that of a kind whose state ends with its cell.
func noMemory(Limit) int64 { return 0 }

// windowLength is the window in µs.
func windowLength(l Limit) int64 { return l.Window.Microseconds() }

// knownAlgorithms lists the table for an error message.
func knownAlgorithms() string {
	return strings.Join(slices.Sorted(maps.Keys(algorithms)), ", ")
}
