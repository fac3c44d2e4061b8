package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
)

// TestNodesTogether: demand is the sum of what is fresh, all else is the newest word on the latest cell.
func TestNodesTogether(t *testing.T) {
	hint := func(node string, cell, rate, spare int64) Hint {
		return Hint{Region: "us", Node: node, Bucket: "b", Cell: cell, Used: 10 * spare, Total: 20 * spare, Rate: rate, Share: 3, Spare: spare}
	}
	type word struct {
		Hint
		at int64
	}
	for name, x := range map[string]struct {
		words []word
		want  Hint
		at    int64
	}{
		"nobody":                      {nil, Hint{}, 0},
		"one":                         {[]word{{hint("a", 7, 5, 1), 100}}, hint("a", 7, 5, 1), 100},
		"one that says another thing": {[]word{{hint("a", 7, 5, 1), 100}, {hint("a", 7, 6, 2), 200}}, hint("a", 7, 6, 2), 200},
		"two":                         {[]word{{hint("a", 7, 5, 1), 100}, {hint("b", 7, 6, 2), 200}}, hint("b", 7, 11, 2), 200},
		"two, the other first":        {[]word{{hint("b", 7, 5, 1), 100}, {hint("a", 7, 6, 2), 200}}, hint("a", 7, 11, 2), 200},
		"the later on an older cell":  {[]word{{hint("a", 8, 5, 1), 100}, {hint("b", 7, 6, 2), 200}}, hint("a", 8, 11, 1), 100},
		"one that is gone":            {[]word{{hint("a", 9, 5, 1), -hintLife(0) - 1}, {hint("b", 7, 6, 2), 200}}, hint("b", 7, 6, 2), 200},
		"all gone":                    {[]word{{hint("a", 9, 5, 1), -hintLife(0) - 1}}, Hint{}, 0},
		"more than can be counted": {[]word{{hint("a", 7, algorithms.MaxUnits, 1), 100}, {hint("b", 7, algorithms.MaxUnits, 2), 200}},
			hint("b", 7, algorithms.MaxUnits, 2), 200},
	} {
		var n nodes
		for _, w := range x.words {
			n = n.hear(w.Hint, w.at, hintLife(0))
		}
		if got, at := n.together(300); got != x.want || at != x.at {
			t.Errorf("%s: %+v at %d, want %+v at %d", name, got, at, x.want, x.at)
		}
	}
}

// TestNodesAreBounded: of whatever speaks, the last sixteen are listened to, in the order of their names.
func TestNodesAreBounded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var n nodes
		var spoke []string // by when they spoke last
		for now := range rapid.Int64Range(1, 60).Draw(r, "words") {
			name := fmt.Sprint(rapid.IntRange(0, 30).Draw(r, "node"))
			n = n.hear(Hint{Node: name, Rate: now}, now, hintLife(0))
			spoke = append(slices.DeleteFunc(spoke, func(s string) bool { return s == name }), name)
			spoke = spoke[max(len(spoke)-mostNodes, 0):]
			for _, s := range spoke {
				if !slices.ContainsFunc(n, func(t told) bool { return t.Node == s }) {
					r.Fatalf("%s, one of the last that spoke, is forgotten: %v", s, n)
				}
			}
			if len(n) != len(spoke) || !slices.IsSortedFunc(n, func(a, b told) int { return strings.Compare(a.Node, b.Node) }) {
				r.Fatalf("%d of %d, or out of order: %v", len(n), len(spoke), n)
			}
		}
	})
}

// TestChanged: a demand has changed if it is a quarter off, and by more than chance is.
func TestChanged(t *testing.T) {
	for _, x := range []struct {
		old, now int64
		want     bool
	}{
		{0, 0, false}, {0, 1, false}, {0, 100_000, true}, {100_000, 0, true}, {300_000, 300_000, false},
		{300_000, 374_000, false}, {300_000, 400_000, true}, {10_000, 20_000, false}, {10_000, 60_000, true},
		{1 << 56, 1 << 56, false}, {0, 1 << 56, true}, {1 << 56, 1 << 55, true},
	} {
		if got := changed(x.old, x.now); got != x.want {
			t.Errorf("from %d to %d: changed %t", x.old, x.now, got)
		}
	}
}

// TestHintEvery: what has not changed is said again every few seconds, and believed until it was said twice more.
func TestHintEvery(t *testing.T) {
	for cell, want := range map[int64]int64{1: 2_000_000, 1_000_000: 2_000_000, 6_000_000: 3_000_000, 10_000_000: 4_500_000, 86_400_000_000: 4_500_000} {
		if got := hintEvery(cell); got != want || hintLife(cell) != 5*want/2 {
			t.Errorf("cells of %d us: every %d us, believed for %d", cell, got, hintLife(cell))
		}
	}
	if hintLife(0) < latestHint+2*Interval {
		t.Errorf("a mate's hint, which may be believed for the shortest time, is forgotten before the next")
	}
}
