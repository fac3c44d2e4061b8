//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

// whole reports whether no use of the bucket counts any more at a time. It changes nothing.
func (r *drawnRegion) whole(t *rapid.T, at quantity.StoreTime) bool {
	r.now = at
	g := r.Inspect(at, Inspect{Fence: r.guard(), Target: Target{Key: "k", Terms: r.terms}})
	if g.Status != StatusOK {
		t.Fatalf("inspect: %v", g.Status)
	}
	whole := g.Used <= 0 && g.Shut == 0
	if r.terms.Kind == LeakyBucket { // who comes to a whole queue is served at once
		_, a := r.asked(at, 1)
		whole = whole && a.Verdicts[0].Delay == 0 && a.Verdicts[0].Retry <= 0
	}
	if whole != (g.Reset == 0) {
		t.Fatalf("whole: %v, reset after %d us: %+v", whole, g.Reset, g.State)
	}
	return g.Reset == 0
}

// ask decides a cost and charges it, or looks at the bucket. It returns the time at which the
// answer says that the bucket is whole.
func (r *drawnRegion) ask(t *rapid.T) (now, at quantity.StoreTime) {
	if rapid.Bool().Draw(t, "look") {
		g := r.Inspect(r.now, Inspect{Fence: r.guard(), Target: Target{Key: "k", Terms: r.terms}})
		return g.Now, g.Now.Add(g.Reset)
	}
	clock := r.now
	d := r.Decide(clock, Decide{Fence: r.guard(), Commit: true,
		Costs:   rapid.SliceOfN(drawUnits(1, 6), 1, 3).Draw(t, "costs"),
		Buckets: []LimitTarget{{Target: Target{Key: "k", Terms: r.terms}}}})
	for _, a := range d.Answers {
		if a.Admitted && d.Buckets[0].Reset <= 0 {
			t.Fatalf("admitted, and whole at once: %+v", d)
		}
	}
	if d.Buckets[0].Reset == 0 {
		return d.Now, d.Now
	}
	return d.Now, clock.Add(d.Buckets[0].Reset)
}

// TestResetIsWhenTheBucketIsWhole: if nothing else happens, at the moment named no use counts any
// more, and not a microsecond before. Of a queue nobody waits then, either.
func TestResetIsWhenTheBucketIsWhole(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			var used, forgotten int
			suite.Check(t, func(t *rapid.T) {
				r := drawRegion(t, kind)
				if rapid.IntRange(0, 3).Draw(t, "book") == 0 {
					r.Book(r.now, Book{Fence: r.guard(), Target: Target{Key: "k", Terms: r.terms},
						Node: "n", Window: CellAt(max(r.now, r.mark), r.terms.Window),
						Units: drawUnits(1, 40).Draw(t, "booked")})
				}
				now, at := r.ask(t)
				if at > now {
					used++
					if kind.Bucket() && r.terms.Entitlement == 0 {
						forgotten++ // it may be whole before: by the end of its key
					} else {
						for _, early := range append(sampled(t, now, at-1), at-1) {
							if r.whole(t, early) {
								t.Fatalf("whole %d us before the time named, %d us after the answer",
									at.Sub(early), early.Sub(now))
							}
						}
					}
				}
				if !r.whole(t, at) {
					t.Fatalf("not whole at the time named, after %d us", at.Sub(now))
				}
			})
			if used == 0 || kind.Bucket() && forgotten == 0 {
				t.Fatalf("%d used, %d of them without a rate: the test saw nothing", used, forgotten)
			}
			t.Logf("%d used, %d of them without a rate", used, forgotten)
		})
	}
}
