//go:build !race

package exchange

import (
	"math"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestRecoveryCounts: a bucket waits, is restored but for a peer that does not tell, and is whole
// when it has told; a new loss, and a new generation, begin the count anew.
func TestRecoveryCounts(t *testing.T) {
	const s, hour int64 = allocator.Second, 3600 * allocator.Second
	b := &Bucket{ID: "b", Epoch: "1", Kind: algorithms.FixedWindow, Limit: 100, Window: hour,
		Cell: hour, Tick: 1,
		Entitlements: map[string]quantity.Units{"us": 50, "eu": 50}, Lending: allocator.PPM,
		Borrowing: -1, Recovered: true}
	m := New("us", "n1", Options{})
	m.Step(1, TenureChanged{Generation: 2, Epoch: "1", Peers: []string{"eu"}})
	now := quantity.NodeTime(100 * hour)
	counts := func(step string, waiting, partly int64) {
		t.Helper()
		if got := m.Stats(); got.Recovering-got.PartlyKnown != waiting ||
			got.PartlyKnown != partly {
			t.Errorf("%s: %d wait, %d are partly known; want %d and %d", step,
				got.Recovering-got.PartlyKnown, got.PartlyKnown, waiting, partly)
		}
	}
	restored := func(out Effects) {
		t.Helper()
		if len(out.Restores) != 1 {
			t.Fatalf("%d buckets are to be restored, want 1", len(out.Restores))
		}
		m.Step(now, Restored{Restore: out.Restores[0],
			Result: algorithms.Restored{Head: algorithms.Head{Status: algorithms.StatusOK,
				Now: quantity.StoreTime(now)}}})
	}
	lose := func(at quantity.StoreTime) {
		out := m.Step(now, Lost{Generation: m.generation, Now: quantity.StoreTime(now),
			Buckets: []LostBucket{{Bucket: b, At: at}}})
		for _, c := range out.Consults { // its journal is a new one
			m.Step(now, Consulted{Consult: c,
				All: []Testimony{{Bucket: "b", WholeSince: math.MaxInt64}}})
		}
	}

	lose(quantity.StoreTime(now))
	counts("a loss", 1, 0)
	now += quantity.NodeTime(5 * s) // while nobody tells anything
	restored(m.Step(now, Tick{Jitter: allocator.PPM}))
	counts("eu did not tell", 0, 1)
	restored(m.Step(now, Testified{Testimonies{From: "eu", Node: "n1", ForGeneration: 2,
		All: []Testimony{{Bucket: "b", Now: quantity.StoreTime(now)}}}}))
	counts("eu told", 0, 0)

	lose(quantity.StoreTime(now + 1))
	now += quantity.NodeTime(5 * s)
	restored(m.Step(now, Tick{Jitter: allocator.PPM}))
	counts("another loss", 0, 1)
	lose(quantity.StoreTime(now + 2))
	counts("lost again meanwhile", 1, 0)
	now += quantity.NodeTime(5 * s)
	restored(m.Step(now, Tick{Jitter: allocator.PPM}))
	recovered := m.Stats().Recovered
	counts("restored once more", 0, 1)
	m.Step(now, TenureChanged{Generation: 3, Epoch: "1", Peers: []string{"eu"}})
	counts("another generation", 0, 0)
	if recovered != 4 {
		t.Errorf("%d restored, want 4", recovered)
	}
}

// TestRefusalsAreCountedByReason: what a peer of a later version says is unknown to us, and counts
// as that.
func TestRefusalsAreCountedByReason(t *testing.T) {
	for _, c := range []struct{ says, counted Refusal }{
		{RefusedTerms, RefusedTerms}, {RefusedStore, RefusedStore},
		{RefusedStore + 1, RefusedUnknown}, {255, RefusedUnknown},
	} {
		if got := c.says.known(); got != c.counted || c.says.String() != c.counted.String() {
			t.Errorf("%d counts as %s and is called %s, want %s", c.says, got, c.says, c.counted)
		}
	}
}
