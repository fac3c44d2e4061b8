//go:build !race

package sim

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestDocumentsSeedsHold: no seed breaks an invariant whose limits documents change in substance.
// Each region is given the newest at a time of its own.
func TestDocumentsSeedsHold(t *testing.T) {
	tally := holds(t, Hunt{Config: Config{Documents: true}, Seeds: suite.Short[uint64](50, 100)})
	if changes := tally.Counts.Deeds[Policy]; changes < int64(tally.Seeds) {
		t.Errorf("%d documents were given to regions in %d seeds: too few", changes, tally.Seeds)
	}
}

// document returns the text of a limits document of two regions with one limit.
func document(weight, other int, limit string) string {
	return fmt.Sprintf("regions: {r0: {weight: %d}, r1: {weight: %d}}\nlimits:\n  - {name: l0, domain: api, key: [account], lending_limit: 0, on_store_failure: deny, %s}\n",
		weight, other, limit)
}

// succeeding returns a plan in which both regions ask for all there is, and take one document after
// the other, each 0.1 s before the end of a window of 10 s.
func succeeding(texts ...string) *Plan {
	var acts []Act
	for i := range texts[1:] {
		acts = append(acts, at(9.9+10*float64(i), Policy, 0.02))
	}
	p := pair(1, "", [][2]int64{{2, 42}}, acts...)
	p.Document, p.Versions = texts[0], texts[1:]
	return p
}

const tens, counted10 = "algorithm: fixed_window, limit: 200, window: 10s",
	"algorithm: sliding_window_counter, limit: 200, window: 10s"

// onceTwice are plans in which regions worked under two documents whose parts add up to more than
// the limit, as rights of the next window outlived the document that promised them. The judge knows
// one algorithm and window of a limit: changes of these are tried in region, by
// TestAdoptChangesLimitsAtOnce.
var onceTwice = map[string]*Plan{
	"the weight goes from one to the other": succeeding(document(98, 2, tens), document(2, 98, tens)),
	"the weight goes there and back": succeeding(document(98, 2, counted10), document(2, 98, counted10),
		document(98, 2, counted10)),
	"the limit is lowered": succeeding(document(1, 1, tens),
		document(1, 1, "algorithm: fixed_window, limit: 20, window: 10s")),
}

func TestPlansThatOnceAdmittedUnderTwoDocuments(t *testing.T) {
	keep(t, onceTwice)
}
