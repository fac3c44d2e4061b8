//go:build !race

package sim

import (
	"math"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/memory/store"
)

// What checkpoints may miss is measured: a hundredth of the share, and what the region admitted in
// its busiest second, however much it might have admitted in one. A judge that took the whole limit
// for that second let 345 units pass where 6 are printed.
func TestWhatCheckpointsMissIsMeasured(t *testing.T) {
	const each, seconds = 6, 40
	act := at(1, Steady, seconds, of(0))
	act.Amount, act.Cost = each*1000, 1
	w, err := newWorld(pair(1, hourly, nil, act), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.counts.Deeds = map[Deed]int64{}
	w.run((seconds + 1) * 1_000_000)
	if w.broken != nil {
		t.Fatal(w.broken)
	}
	b, r := w.limits[0].buckets[0], w.regions[0]
	used, missed := b.used(r), b.uncounted(r)
	if used < each*(seconds-2) || missed < 5+each || missed > 5+2*each {
		t.Errorf("of %d units used checkpoints may miss %d, want a hundredth of 500 and some %d of a second",
			used, missed, each)
	}
}

// TestAReplicaThatHasAll: the data of a region's store come to be those of another server, and all nodes
// confirm that these know all they had. Then nothing counts as lost. A node that is dead, cut off from
// its mates, or paused confirms nothing.
func TestAReplicaThatHasAll(t *testing.T) {
	for name, c := range map[string]struct {
		acts []Act
		lost bool
	}{
		"all confirm":       {nil, false},
		"one node is dead":  {[]Act{at(8, Crash, 10)}, true},
		"one node is apart": {[]Act{at(8, MatesCut, 10)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			promoted := at(10, Failover, 0.000_001)
			w, err := newWorld(pair(2, hourly, [][2]int64{{2, 30}}, append(c.acts, promoted)...), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			s := w.regions[0].store.(*twinServer)
			w.counts.Deeds = map[Deed]int64{}
			before := s.primary.Ledger(store.Whole).Generation
			w.run(w.plan.End)
			stands := s.primary.Ledger(store.Whole).Open(0, algorithms.Open{Expected: math.MaxUint64})
			if w.broken != nil || stands.Generation <= before || stands.LostAt > 0 != c.lost {
				t.Errorf("%v, the store stands as %+v, before under generation %d", w.broken, stands, before)
			}
		})
	}
}

// TestTheSimulationIsNoNode: what the simulation reads of a store, the store does not take for the
// question of a node. Of such a node it was waited after each loss, and no use was ever known.
func TestTheSimulationIsNoNode(t *testing.T) {
	w, err := newWorld(lending(pair(2, hourly, nil, at(1, Steady, 30, of(0)))), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.counts.Deeds = map[Deed]int64{}
	w.run(30_000_000)
	ledger := w.regions[0].store.(*twinServer).primary.Ledger(store.Whole)
	named := ledger.Nodes(algorithms.Nodes{Generation: ledger.Generation})
	if len(named.At) != 2 || named.At["n1"] == 0 || named.At["n2"] == 0 {
		t.Errorf("the store says that it answered %v, and the region has two nodes", named.At)
	}
}
