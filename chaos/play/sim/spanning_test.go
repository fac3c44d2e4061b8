//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/store"
)

// TestSpanningSeedsHold: no seed breaks an invariant whose requests span shards, or come several in
// a call.
func TestSpanningSeedsHold(t *testing.T) {
	for _, kept := range []uint64{chargedBefore, refundedSecond} {
		holds(t, Hunt{Config: Config{For: 30_000_000, Spanning: true, Prefetch: kept == refundedSecond},
			From: kept, Seeds: 1})
	}
	holds(t, Hunt{Config: Config{Spanning: true}, Seeds: suite.Short[uint64](30, 60)})
}

const (
	// chargedBefore is a seed of that draw in which a request is sent again of which one limit was
	// charged by the attempt before, more than a window ago.
	chargedBefore = 2_009_924
	// refundedSecond is one, with prefetch, in which a refund fails in all shards, and the second
	// gives the units back.
	refundedSecond = 2_014_855
)

// TestSpanning: the draw makes requests whose buckets are in different shards, and calls of several
// requests.
func TestSpanning(t *testing.T) {
	spans, together := 0, 0
	for seed := range uint64(50) {
		p := Draw(seed, Config{For: 30_000_000, Spanning: true})
		w, err := newWorld(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		shards := map[store.Shard]bool{}
		for _, b := range w.concern("api", 0) {
			shards[store.ShardOf(w.keyOf(b))] = true
		}
		if len(shards) > 1 {
			spans++
		}
		if p.Together > 1 {
			together++
		}
		w.close()
	}
	if spans < 5 || together < 25 {
		t.Errorf("of 50 plans %d have requests that span shards, and %d calls of several requests",
			spans, together)
	}
}
