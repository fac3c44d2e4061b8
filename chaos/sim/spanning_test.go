package sim

import (
	"flag"
	"testing"

	"github.com/quotad/quotad/region/store"
)

var spanningTo = flag.Uint64("spanning", 60, "how many seeds TestSpanningSeedsHold runs")

// TestSpanningSeedsHold: no seed breaks an invariant whose requests span shards, or come several in
// a call.
func TestSpanningSeedsHold(t *testing.T) {
	holds(t, Hunt{Config: Config{Spanning: true}, Seeds: *spanningTo, LuaEvery: *luaEvery})
}

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
