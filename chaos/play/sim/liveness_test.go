//go:build !race

package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestCalmsStandInThePage: the page of faults has the rows of Calms and no others, and each fault that
// the simulator fires is in one of them.
func TestCalmsStandInThePage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/development/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## How soon all is well again\n")
	if !found {
		t.Fatal("the page has no such section")
	}
	var rows []string
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		}
	}
	fired := map[int]bool{}
	for i, c := range Calms {
		numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Faults), " ", ", "), "[]")
		want := fmt.Sprintf("| %s | %s | %g s | %s |", numbers, c.What, c.Within.Seconds(), c.Closed)
		if place := i + 2; place >= len(rows) || rows[place] != want {
			t.Errorf("the page lacks the row\n%s", want)
		}
		for _, row := range c.Faults {
			fired[row] = true
		}
	}
	if len(rows) != len(Calms)+2 {
		t.Errorf("the page has %d rows, want %d", len(rows)-2, len(Calms))
	}
	for row, name := range RowNames {
		if !fired[row] {
			t.Errorf("no row is about %s (%d)", name, row)
		}
	}
}

// TestARecoveryThatNeverEnds: a node that its mate never hears again leaves what was used unknown.
// This breaks nothing but liveness. Once it is heard, nothing is broken, and all buckets are judged.
func TestARecoveryThatNeverEnds(t *testing.T) {
	for name, alone := range map[string]int{"heard": 0, "never heard": 1} {
		t.Run(name, func(t *testing.T) {
			w, err := newWorld(pair(2, hourly, [][2]int64{{2, 10}}, at(12, Flush, 0)), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			w.counts.Deeds = map[Deed]int64{}
			w.regions[0].nodes[1].alone = alone
			w.run(w.plan.End)
			w.finish()
			broken := w.broken != nil && w.broken.Invariant == "liveness"
			if broken != (alone > 0) || w.broken != nil && !broken {
				t.Errorf("%v", w.broken)
			}
			if l := w.counts.Liveness; alone == 0 && l != (Liveness{Judged: 2}) {
				t.Errorf("%+v", l)
			}
		})
	}
}

// mostAreJudged fails the test if more than a third of the buckets were not judged in the end.
func mostAreJudged(t *testing.T, l Liveness) {
	t.Helper()
	if l.Judged < 2*l.Not {
		t.Errorf("of %d buckets in a region only %d had to be decided with the store in the end", l.Judged+l.Not, l.Judged)
	}
}
