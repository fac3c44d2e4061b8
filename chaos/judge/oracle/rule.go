package oracle

import (
	"maps"
	"slices"
	"strings"
)

// algorithm defines one kind of limit for the judge. To add a kind, add an entry to the table
// below.
type algorithm struct {
	// cellOf returns the cell of a decision with this store time (µs).
	cellOf func(l Limit, at int64) int64
	// burst says that a tally is bounded by the limit's Burst, and not by its Limit.
	burst bool
	// memory returns how long, in µs, an admission may weigh on later ones, or 0 if no longer than
	// its cell. It is the length of the periods over which false denials are netted.
	memory func(l Limit) int64
	// newCeiling makes the check of one bucket.
	newCeiling func(l Limit) ceiling
	// newPool makes the pooled limiter of one bucket.
	newPool func(l Limit) pool
	// exceeded describes how a tally is above the bound. units is the sum of the admissions that it
	// counts, old ones in full.
	exceeded func(l Limit, t tally, units int64) string
	// measured is what tally and bound are numbers of, in words that fit between the two numbers.
	measured string
}

// bound returns what no tally may exceed, in units.
func (a algorithm) bound(l Limit) int64 {
	if a.burst {
		return l.Burst
	}
	return l.Limit
}

// ceiling collects what one bucket admitted, and finds where it was too much. The result must not
// depend on the order in which answers arrive.
type ceiling interface {
	// answered adds an answer of known outcome. admitted is its cost, or 0 for a denial.
	answered(a Answer, admitted int64)
	// unknown adds a request that may have been admitted at any store time from..to (µs).
	unknown(a Answer, from, to int64)
	// tallies returns the tallies of all cells, in the order of time.
	tallies() []tally
	// counted returns the admissions that a tally of the last call of tallies counts, by region and
	// in full, and how many of these units are of unknown outcome.
	counted(t tally) (regions map[string]int64, unknown int64)
}

// tally is the worst of one cell: the quantity that the limit bounds, in units, rounded up. For a
// fixed window it is what the cell admitted. For the other kinds it is the highest level of the
// meter right after an admission in the cell.
type tally struct {
	cell int64
	// all counts unknown outcomes as admitted at the worst time; known leaves them out.
	all, known int64
	// at is the instant of all. since is the time of the earliest admission that could count in it
	// (µs). Both are 0 for a fixed window.
	at, since int64
}

// pool is one limiter that owns the whole limit of one bucket. It is offered requests in the order
// of their store time, but must accept a late one.
type pool interface {
	// offer reports whether the pool admits the request, and charges it if so.
	offer(cell, at, cost int64) bool
	// clone returns a copy that shares nothing.
	clone() pool
}

// algorithms are the kinds of limits that can be judged, by their policy name.
var algorithms = map[string]algorithm{
	"fixed_window": {
		cellOf: windowOf, memory: noMemory, newCeiling: newWindowCeiling, newPool: newWindowPool,
		exceeded: windowExceeded, measured: "admitted on a limit of",
	},
	"sliding_window_counter": {
		cellOf: windowOf, memory: windowLength, newCeiling: newCounterCeiling,
		newPool:  newCounterPool,
		exceeded: counterExceeded, measured: "estimated on a limit of",
	},
	"sliding_window_log": {
		cellOf: logCellOf, memory: windowLength, newCeiling: newLogCeiling, newPool: newLogPool,
		exceeded: logExceeded, measured: "admitted in an interval on a limit of",
	},
	"token_bucket": {
		cellOf: sliceOf, burst: true, memory: drainTime, newCeiling: newTokenCeiling,
		newPool:  newTokenPool,
		exceeded: tokenExceeded, measured: "tokens missing from a bucket of",
	},
	"leaky_bucket": {
		cellOf: queueCellOf, burst: true, memory: drainTime, newCeiling: newQueueCeiling,
		newPool:  newQueuePool,
		exceeded: queueExceeded, measured: "units waiting in a queue of",
	},
}

// noMemory is the memory of a kind whose state ends with its cell.
func noMemory(Limit) int64 { return 0 }

// windowLength returns the window in µs.
func windowLength(l Limit) int64 { return l.Window.Microseconds() }

// knownAlgorithms lists the table for an error message.
func knownAlgorithms() string {
	return strings.Join(slices.Sorted(maps.Keys(algorithms)), ", ")
}
