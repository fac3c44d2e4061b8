//go:build !race

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/barrier"
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
	// A limit is taken out, goes on being charged and lent, and is put back with other parts.
	"what is gone was lent ahead": Draw(142671, Config{For: 60_000_000, Documents: true, Only: []int{10, 2, 6, 7, 0, 11, 9}}),
	// A bucket that is never full is lowered: what was left of it is left.
	"a busy bucket is lowered": Draw(144191, Config{For: 60_000_000, Documents: true, Only: []int{14, 16, 11, 12}}),
	// A node hears of a fence while its store has not shown any time for seconds.
	"a node sleeps while another region is fenced": Draw(147366, Config{For: 60_000_000, Documents: true, Only: []int{20, 21, 9, 16}}),
	// r2 lent r3, whose clock is ahead, of a window that has not begun in r0 when r2 is fenced: 31 of
	// 30 is what promise.md has as fenced-alive.
	"a fenced region had lent ahead": Draw(126060, Config{For: 60_000_000, Documents: true, Only: []int{12, 13, 15, 0, 10}}),
}

func TestPlansThatOnceAdmittedUnderTwoDocuments(t *testing.T) {
	keep(t, onceTwice)
}

// TestDocumentsPlayEveryEdit: the operator of a hundred seeds does all that the package says, each of
// it several times.
func TestDocumentsPlayEveryEdit(t *testing.T) {
	did := map[string]int{}
	for seed := range uint64(100) {
		p := Draw(seed+1, Config{For: 60_000_000, Documents: true})
		all, err := p.documents()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > barrier.MaxOpen {
			did["folds"]++
		}
		ever := map[string]bool{}
		for i, d := range all {
			before, had := d, map[string]bool{}
			if i > 0 {
				before = all[i-1]
			}
			for _, l := range before.Limits {
				had[l.Domain+" "+l.Name] = true
			}
			for _, l := range d.Limits {
				switch name := l.Domain + " " + l.Name; {
				case had[name]:
				case ever[name]:
					did["puts back"]++
				case strings.HasPrefix(l.Domain, "moved-"):
					did["moves"]++
				default:
					did["adds"]++
				}
				delete(had, l.Domain+" "+l.Name)
				ever[l.Domain+" "+l.Name] = true
			}
			did["takes out"] += len(had)
			for _, r := range p.Regions {
				did["fences"] += int(oneIf(d.Fences(r.Name) && !before.Fences(r.Name)))
				did["has return"] += int(oneIf(d.Life(r.Name) > before.Life(r.Name)))
				did["removes"] += int(oneIf(d.Removes(r.Name) && !before.Removes(r.Name)))
				did["lets join"] += int(oneIf(has(d, r.Name) && !has(before, r.Name)))
			}
		}
	}
	for _, what := range []string{"folds", "puts back", "moves", "adds", "takes out", "fences", "has return", "removes", "lets join"} {
		if did[what] < 3 {
			t.Errorf("the operator %s %d times in all", what, did[what])
		}
	}
	t.Log(did)
}
