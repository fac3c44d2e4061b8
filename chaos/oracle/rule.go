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
	// newCeiling makes the check of one bucket.
	newCeiling func(l Limit) ceiling
	// newPool makes the pooled limiter of one bucket.
	newPool func(l Limit) pool
}

// ceiling sums up what one bucket admitted and finds where it was too much. It
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
}

// tally is what was admitted in one place that the limit bounds: for windows a
// cell.
type tally struct {
	cell           int64
	known, unknown int64
	regions        map[string]int64 // known and unknown together
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
	"fixed_window": {cellOf: windowOf, newCeiling: newWindowCeiling, newPool: newWindowPool},
}

// knownAlgorithms lists the table for an error message.
func knownAlgorithms() string {
	return strings.Join(slices.Sorted(maps.Keys(algorithms)), ", ")
}
