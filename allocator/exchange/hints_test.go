//go:build !race

package exchange

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestNodesTogether: demand is the sum of the fresh hints; everything else comes from the newest
// hint about the latest cell.
func TestNodesTogether(t *testing.T) {
	hint := func(node string, cell quantity.Cell, rate quantity.MilliRate,
		spare quantity.Units) Hint {
		return Hint{Region: "us", Node: node, Bucket: "b", Cell: cell, Used: 10 * spare,
			Total: 20 * spare, Rate: rate, Share: 3, Spare: spare}
	}
	type word struct {
		Hint
		at quantity.NodeTime
	}
	for name, x := range map[string]struct {
		words []word
		want  Hint
		at    quantity.NodeTime
	}{
		"nobody": {nil, Hint{}, 0},
		"one":    {[]word{{hint("a", 7, 5, 1), 100}}, hint("a", 7, 5, 1), 100},
		"one that says another thing": {[]word{{hint("a", 7, 5, 1), 100},
			{hint("a", 7, 6, 2), 200}}, hint("a", 7, 6, 2), 200},
		"two": {[]word{{hint("a", 7, 5, 1), 100}, {hint("b", 7, 6, 2), 200}},
			hint("b", 7, 11, 2), 200},
		"two, the other first": {[]word{{hint("b", 7, 5, 1), 100}, {hint("a", 7, 6, 2), 200}},
			hint("a", 7, 11, 2), 200},
		"the later on an older cell": {[]word{{hint("a", 8, 5, 1), 100}, {hint("b", 7, 6, 2), 200}},
			hint("a", 8, 11, 1), 100},
		"one that is gone": {[]word{{hint("a", 9, 5, 1),
			quantity.NodeTime(-allocator.HintLife(0) - 1)}, {hint("b", 7, 6, 2), 200}},
			hint("b", 7, 6, 2), 200},
		"all gone": {[]word{{hint("a", 9, 5, 1), quantity.NodeTime(-allocator.HintLife(0) - 1)}},
			Hint{}, 0},
		"more than can be counted": {[]word{{hint("a", 7, algorithms.MaxUnits, 1), 100},
			{hint("b", 7, algorithms.MaxUnits, 2), 200}},
			hint("b", 7, algorithms.MaxUnits, 2), 200},
	} {
		var n nodes
		for _, w := range x.words {
			n = n.hear(w.Hint, w.at, allocator.HintLife(0))
		}
		if got, at := n.together(300); got != x.want || at != x.at {
			t.Errorf("%s: %+v at %d, want %+v at %d", name, got, at, x.want, x.at)
		}
	}
}

// TestNodesAreBounded: whatever speaks, only the sixteen nodes that spoke last are kept, in the
// order of their names.
func TestNodesAreBounded(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		var n nodes
		var spoke []string // by when they spoke last
		for now := range quantity.NodeTime(rapid.Int64Range(1, 60).Draw(r, "words")) {
			name := fmt.Sprint(rapid.IntRange(0, 30).Draw(r, "node"))
			n = n.hear(Hint{Node: name, Rate: quantity.MilliRate(now)}, now, allocator.HintLife(0))
			spoke = append(slices.DeleteFunc(spoke, func(s string) bool { return s == name }), name)
			spoke = spoke[max(len(spoke)-maxNodes, 0):]
			for _, s := range spoke {
				if !slices.ContainsFunc(n, func(t heardHint) bool { return t.Node == s }) {
					r.Fatalf("%s, one of the last that spoke, is forgotten: %v", s, n)
				}
			}
			if len(n) != len(spoke) ||
				!slices.IsSortedFunc(n,
					func(a, b heardHint) int { return strings.Compare(a.Node, b.Node) }) {
				r.Fatalf("%d of %d, or out of order: %v", len(n), len(spoke), n)
			}
		}
	})
}

// TestHintsOfExtremeNumbers: a hint of a peer or a mate names the smallest or the largest integers.
// The machine cuts them to numbers that it can compute with, and goes on.
func TestHintsOfExtremeNumbers(t *testing.T) {
	for _, n := range []quantity.Units{math.MinInt64, math.MinInt64 + 1, -1,
		algorithms.MaxUnits + 1, math.MaxInt64} {
		for _, region := range []string{"us", "eu"} {
			d := newDoubting(t)
			b := d.bucket("b")
			d.m.Step(d.now, Report{{Bucket: b,
				State: algorithms.State{Cell: quantity.Cell(d.store() / doubtDay), Entitlement: 100,
					Share: 100, Free: 100}, Now: d.store(), Requests: allocator.Requests{Denied: 1}}})
			d.m.Step(d.now, Heard{Hint: Hint{Region: region, Node: "n9", Bucket: "b",
				Cell: quantity.Cell(d.store() / doubtDay), Used: n, Total: n,
				Rate: quantity.MilliRate(n), Share: n, Spare: n, SpareBurst: n}})
			v := d.m.views["b"]
			if v == nil {
				t.Fatal("the bucket is not in view: the test shows nothing")
			}
			var all nodes
			if said := d.m.mates["b"]; region == "us" && said != nil {
				all = said.nodes
			}
			if region == "eu" {
				all = v.dealing("eu").nodes
			}
			for _, h := range all {
				for _, x := range []quantity.Units{h.Used, h.Total, quantity.Units(h.Rate), h.Share,
					h.Spare, h.SpareBurst} {
					if x < 0 || x > algorithms.MaxUnits {
						t.Errorf("%d is believed of %s: %+v", n, region, h.Hint)
					}
				}
			}
			if len(all) != 1 {
				t.Errorf("%d hints of %s are kept, want one", len(all), region)
			}
			for range 10 {
				d.tick()
			}
		}
	}
}
