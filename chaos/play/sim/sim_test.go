//go:build !race

package sim

import (
	"cmp"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// luaEvery is how many seeds there are for each that the Lua scripts play. quotad simulate plays
// any seeds, for any time and by whichever of the two.
const luaEvery = 300

// holds plays seeds, by default from 1 and each for 30 s. It fails the test at the first that
// breaks an invariant, with all that Explain tells of it.
func holds(t *testing.T, h Hunt) Tally {
	t.Helper()
	h.From, h.For, h.LuaEvery = cmp.Or(h.From, 1), cmp.Or(h.For, 30_000_000), luaEvery
	tally, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tally.Broken != nil {
		f, err := Explain(tally.Broken.Plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Fatalf("seed %d: %v\n%v\n%s", f.Seed, f.Broken, f.Acts, f.Timeline)
	}
	return tally
}

// keep runs plans by name, and fails the test for each that breaks an invariant.
func keep(t *testing.T, plans map[string]*Plan) {
	t.Helper()
	for name, p := range plans {
		t.Run(name, func(t *testing.T) {
			o, err := Run(p)
			if err != nil {
				t.Fatal(err)
			}
			if o.Broken != nil {
				t.Error(o.Broken)
			}
		})
	}
}

// TestSeedsHold: no seed breaks an invariant, and every simulated row of the fault matrix fires.
func TestSeedsHold(t *testing.T) {
	tally := holds(t, Hunt{Seeds: suite.Short[uint64](300, 1000)})
	t.Logf("%d seeds (%d by Lua), %v of virtual time in %v, %d events, rows %v", tally.Seeds,
		tally.Lua, tally.Virtual, tally.Took, tally.Counts.Events, tally.Counts.Rows)
	mostAreJudged(t, tally.Counts.Liveness)
	for row, name := range RowNames {
		if tally.Counts.Rows[row] == 0 {
			t.Errorf("row %d (%s) never fired", row, name)
		}
	}
}

// TestWiderSeedsHold: no seed of the wider draw breaks an invariant.
func TestWiderSeedsHold(t *testing.T) {
	for _, kept := range []uint64{askedAndWaited, refusedAtOnce, twoCopies, openedHalf,
		nothingRaised, knowsAndStandsStill, foundAgain, begunTwice} {
		holds(t, Hunt{Config: Config{For: 30_000_000, Wider: true, settled: true}, From: kept, Seeds: 1})
	}
	tally := holds(t, Hunt{Config: Config{Wider: true}, Seeds: suite.Short[uint64](100, 200)})
	t.Logf("%d seeds (%d by Lua), %v of virtual time in %v, faults %v", tally.Seeds, tally.Lua,
		tally.Virtual, tally.Took, tally.Counts.Deeds)
	mostAreJudged(t, tally.Counts.Liveness)
	for _, d := range []Deed{Stick, NodeClock, Reboot, Snapshot, MatesCut, StoreBusy, NodeAdded, NodeGone, ZoneLost, Recover} {
		if tally.Counts.Deeds[d] == 0 {
			t.Errorf("%s never happened", d)
		}
	}
}

const (
	// askedAndWaited is a seed of the wider draw in which the first request after a bucket is
	// deleted is denied by the store and waits. By that the node took the bucket for a new one.
	askedAndWaited = 10_043_715
	// refusedAtOnce is one in which the first call after a bucket is deleted does not come to the
	// bucket: the store had been opened anew.
	refusedAtOnce = 11_006_916
	// twoCopies is one in which a replica takes a store's place while an earlier copy of the store
	// waits to be put back: each has data of its own.
	twoCopies = 12_014_148
	// openedHalf is one in which a node begins a generation after a loss and does not hear more
	// from the busy store, but decides under it.
	openedHalf = 13_011_129
	// nothingRaised is one in which the last commits before a node dies raise no row, so that its
	// journal does not know how far the store's time had come since a copy was made.
	nothingRaised = 14_011_871
	// knowsAndStandsStill is one in which the only node that knows a later time than a copy is paused
	// while others decide on the copy.
	knowsAndStandsStill = 14_023_159
	// foundAgain is one in which a node that has not heard of a new generation finds the one before
	// again, in a copy.
	foundAgain = 15_010_909
	// begunTwice is one in which two nodes began a generation of the same number: a clock had been
	// ahead, and the store lost its data twice before the second node heard of the first.
	begunTwice = 15_048_805
)
