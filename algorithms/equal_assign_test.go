//go:build !race

package algorithms_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// assignable reports whether rights of a kind can be assigned.
func assignable(k algorithms.Kind) bool {
	return k == algorithms.TokenBucket || k == algorithms.FixedWindow
}

// assign draws a call of one of three nodes about a bucket of which rights can be assigned, if
// there is one.
func (h *history) assign(t *rapid.T) {
	key := h.key(t)
	if !assignable(h.buckets[key].Kind) {
		key = map[string]string{"a": "b", "b": "a"}[key]
	}
	if !assignable(h.buckets[key].Kind) {
		t.Skip("no bucket of which rights can be assigned")
	}
	c := algorithms.Assign{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key), ExistsUntil: h.known(t, key)},
		Holder: rapid.SampledFrom([]string{"n1", "n2", "eu-west"}).Draw(t, "node"),
		Cell:   h.cell(t, key),
		Known:  quantity.Units(rapid.Int64Range(0, 2).Draw(t, "known")),
		Held:   h.units(t, "held"), Returned: h.units(t, "given back"),
		Kept: quantity.Units(rapid.Int64Range(-1, 3).Draw(t, "kept"))}
	got := must[algorithms.Assigned](t)(c.Parse(h.eval(t, algorithms.AssignScript, c.Args(), key)))
	same(t, "assign", c, got, h.twin.Assign(h.time(got.Now), c))
	h.exists(key, got.State)
	h.lost(key, got.Status, got.LostAt)
}

// crowd has many nodes hold rights of a cell of which such can be assigned, so that one more may
// find no room.
func (h *history) crowd(t *rapid.T) {
	if rapid.IntRange(0, 7).Draw(t, "rare") > 0 {
		t.Skip("rarely")
	}
	key := h.key(t)
	if !assignable(h.buckets[key].Kind) {
		t.Skip("no such bucket")
	}
	c := algorithms.Assign{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key), ExistsUntil: h.known(t, key)}, Cell: h.cell(t, key), Held: 1,
		Returned: h.units(t, "given back")}
	for i := range rapid.SampledFrom([]int{5, algorithms.MaxHolders, algorithms.MaxHolders + 2}).Draw(t, "nodes") {
		c.Holder = fmt.Sprint("m", i)
		got := must[algorithms.Assigned](t)(c.Parse(h.eval(t, algorithms.AssignScript, c.Args(), key)))
		same(t, "assign", c, got, h.twin.Assign(h.time(got.Now), c))
		h.exists(key, got.State)
		h.lost(key, got.Status, got.LostAt)
		if got.Status != algorithms.StatusOK && got.Status != algorithms.StatusCrowded {
			return
		}
	}
}

// TestLuaEqualsTwinOfAssignedRights is TestLuaEqualsTwin for such kinds alone, with nodes that
// hold and return rights of them all the time. One node has the name of a region.
func TestLuaEqualsTwinOfAssignedRights(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			l := newLua(t, start(t))
			suite.Check(t, func(t *rapid.T) {
				h := begin(t, l, false, algorithms.TokenBucket, algorithms.FixedWindow)
				actions := h.actions()
				actions["assign again"], actions["assign once more"] = h.assign, h.assign
				actions["many assign"] = h.crowd
				actions["lend again"], actions["credit again"] = h.lend, h.credit
				actions["clock"], actions["reopen"] = h.clock, h.reopen
				t.Repeat(actions)
			})
		})
	}
}

// TestAssignedRightsAreWrittenOnlyWhereThereAreSome: a bucket without assigned rights is written
// as scripts that know of none write it, also after all were returned.
func TestAssignedRightsAreWrittenOnlyWhereThereAreSome(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			l := newLua(t, start(t))
			suite.Check(t, func(t *rapid.T) {
				h := begin(t, l, false, algorithms.TokenBucket)
				h.buckets["a"] = algorithms.Terms{Kind: algorithms.TokenBucket, Window: window,
					Cell: window, Tick: 1, Entitlement: 10, Burst: 5}
				c := algorithms.Assign{Fence: h.guard, Target: algorithms.Target{Key: "a",
					Terms: h.buckets["a"]}, Holder: "n1", Cell: h.buckets["a"].CellAt(h.now)}
				for _, step := range []struct {
					held, returned quantity.Units
					rows           string
				}{
					{4, 0, "@1800000000000 0 0 0 0 0 30 4;1800000000000 =n1 4 0 0 0 0 0;"},
					{4, 3, "@1800000000000 0 0 0 0 0 30 1;1800000000000 =n1 4 0 0 3 0 0;"},
					{4, 4, "@1800000000000 0 0 0 0 0 30;1800000000000 =n1 4 0 0 4 0 0;"},
				} {
					c.Held, c.Returned = step.held, step.returned
					must[algorithms.Assigned](t)(c.Parse(h.eval(t, algorithms.AssignScript,
						c.Args(), "a")))
					if rows := l.client.HGet(context.Background(), "a",
						"rows").Val(); rows != step.rows {
						t.Fatalf("held %d, returned %d: %q, want %q", step.held, step.returned,
							rows, step.rows)
					}
				}
			})
		})
	}
}

// TestRowsOfNodesStandAnywhere: versions of before wrote the rows of a cell in any order, those of
// nodes among the others.
func TestRowsOfNodesStandAnywhere(t *testing.T) {
	l := newLua(t, fixtures.Kinds["process"](t))
	suite.Check(t, func(t *rapid.T) {
		h := begin(t, l, false, algorithms.TokenBucket)
		h.buckets["a"] = algorithms.Terms{Kind: algorithms.TokenBucket, Window: window,
			Cell: window, Tick: 1, Entitlement: 20, Burst: 5}
		cell := h.buckets["a"].CellAt(h.now)
		target := algorithms.Target{Key: "a", Terms: h.buckets["a"]}
		want := map[string]algorithms.Row{"=n1": {Lent: 4, Regained: 1}, "=n-1": {Lent: 2},
			"east": {Lent: 3}, "n1": {Borrowed: 6, Returned: 1, BurstLent: 1}}
		var text string
		for _, peer := range rapid.Permutation(slices.Sorted(maps.Keys(want))).Draw(t, "order") {
			r := want[peer]
			text += fmt.Sprintf("%d %s %d %d %d %d %d %d;", cell, peer, r.Lent, r.Returned, r.Borrowed,
				r.Regained, r.BurstLent, r.BurstBorrowed)
		}
		l.client.HSet(context.Background(), "a", "rows",
			fmt.Sprintf("@%d 5 3 1 0 3 %d 5;%s", cell, len(text), text))
		for _, c := range []algorithms.Assign{{Holder: "n1", Held: 5, Returned: 1},
			{Holder: "1", Held: 7}} {
			c.Fence, c.Target, c.Cell = h.guard, target, cell
			g := must[algorithms.Assigned](t)(c.Parse(h.eval(t, algorithms.AssignScript, c.Args(), "a")))
			if g.Held != c.Held {
				t.Fatalf("%s holds %d, want %d", c.Holder, g.Held, c.Held)
			}
			want["="+c.Holder] = algorithms.Row{Lent: c.Held, Regained: c.Returned}
		}
		c := algorithms.Inspect{Fence: h.guard, Target: target}
		found := must[algorithms.Inspected](t)(c.Parse(h.eval(t, algorithms.InspectScript, c.Args(), "a")))
		for _, r := range found.Rows {
			if r.Row != want[r.Peer] {
				t.Errorf("%+v, want %+v", r, want[r.Peer])
			}
			delete(want, r.Peer)
		}
		if len(want) > 0 || found.Assigned(cell) != 13 || found.Share != 20+5-3 {
			t.Errorf("without %v: %+v", want, found)
		}
	})
}

// TestLuaEqualsTwinOfCrowdedBuckets: more nodes ask for rights of this cell and the next than may
// hold some. When the first cell is over, those that hold some of the second go on.
func TestLuaEqualsTwinOfCrowdedBuckets(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			const begun = quantity.StoreTime(1_800_000_000_000_000)
			const most = algorithms.MaxHolders
			l, twin, now := newLua(t, start(t)), &algorithms.Twin{}, begun
			l.setTime(t, now)
			open := algorithms.Open{Generation: 1, Epoch: "1-abc"}
			l.eval(t, algorithms.OpenScript, open.Args())
			twin.Open(now, open)
			of := algorithms.Terms{Kind: algorithms.TokenBucket, Window: window, Cell: window,
				Tick: 1, Entitlement: 100, Burst: 5}
			held := map[quantity.Cell]quantity.Units{}
			refused := 0
			for range 2 {
				for i := range quantity.Cell(2 * (most + 3)) {
					c := algorithms.Assign{Fence: algorithms.Fence{Generation: 1, Epoch: "1-abc",
						Clock: now}, Target: algorithms.Target{Key: "a", Terms: of},
						Holder: fmt.Sprint("n", i/2), Held: 1, Cell: of.CellAt(now) + i%2}
					got := must[algorithms.Assigned](t)(c.Parse(l.eval(t, algorithms.AssignScript,
						c.Args(), "a")))
					same(t, "assign", c, got, twin.Assign(now, c))
					held[c.Cell-of.CellAt(begun)] += got.Held
					if got.Status == algorithms.StatusCrowded {
						refused++
					}
				}
				now += window
				l.setTime(t, now)
			}
			// Those of cell 1 are answered twice.
			if held[0] != most || held[1] != 2*most || held[2] != most || refused != 4*3 {
				t.Errorf("held %d, %d refused", held, refused)
			}
		})
	}
}

// TestOtherKindsAreNotAssigned: the script refuses a bucket of any other kind, and writes nothing.
func TestOtherKindsAreNotAssigned(t *testing.T) {
	l := newLua(t, fixtures.Kinds["process"](t))
	suite.Check(t, func(t *rapid.T) {
		h := begin(t, l, false, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog,
			algorithms.LeakyBucket)
		c := algorithms.Assign{Fence: h.guard, Target: algorithms.Target{Key: "a",
			Terms: h.buckets["a"]}, Holder: "n1", Cell: h.buckets["a"].CellAt(h.now), Held: 1}
		_, err := l.run(algorithms.AssignScript, c.Args(), "a")
		if err == nil || l.client.Exists(context.Background(), "a").Val() != 0 {
			t.Fatalf("%s: %v", c.Terms.Kind, err)
		}
	})
}
