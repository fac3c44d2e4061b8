//go:build !race

package exchange

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// whole offers one request of a cost. If it is denied it waits for rights, if the region borrows.
func (r *testRegion) whole(cost quantity.Units, done func(admitted bool)) {
	d := r.chargeWhole(cost)
	if admitted := d.Answers[0].Admitted; admitted || !r.borrows {
		done(admitted)
		return
	}
	if rest := r.bucket.LentFrom(d.Now, cost, 3*r.net.delay); rest > 0 {
		r.after(rest, func() { r.wholeIn(cost, r.chargeWhole(cost), done) })
		return
	}
	r.wholeIn(cost, d, done)
}

// wholeIn has a request that was denied wait for rights.
func (r *testRegion) wholeIn(cost quantity.Units, d algorithms.Decided, done func(admitted bool)) {
	life, over := r.born, false
	again := func(bool) {
		if !over && r.born == life {
			over = true
			done(r.chargeWhole(cost).Answers[0].Admitted)
		}
	}
	r.woken = again
	r.after(3*r.net.delay, func() { again(false) })
	r.step(Wanted{Bucket: r.bucket, Units: cost, State: d.Buckets[0], Now: d.Now})
}

// chargeWhole has the store decide one cost, and the machine observe it.
func (r *testRegion) chargeWhole(cost quantity.Units) algorithms.Decided {
	r.offer(cost)
	d := r.store.Decide(quantity.StoreTime(r.time()), algorithms.Decide{Fence: r.guard(), Commit: true,
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: r.bucket.ID, Terms: r.terms()}}},
		Costs:   []quantity.Units{cost}})
	o := Observed{Bucket: r.bucket, State: d.Buckets[0], Now: d.Now}
	if d.Answers[0].Admitted {
		o.Admit(cost, algorithms.Whole)
		r.admitted += cost
		r.admit[int64(d.Buckets[0].Cell)] += cost
	} else {
		o.Deny(cost, algorithms.Whole)
		r.denied += cost
	}
	r.step(o)
	return d
}

// attempts has a region ask for a cost each second and up to a quarter more, as callers are told
// to, until it is admitted or so many times.
func (r *testRegion) attempts(cost quantity.Units, most int, served func(attempt int)) {
	var ask func(n int)
	ask = func(n int) {
		r.whole(cost, func(admitted bool) {
			if admitted {
				served(n)
			} else if n < most {
				r.after(allocator.Second+r.rand.Int64N(allocator.Second/4), func() { ask(n + 1) })
			}
		})
	}
	ask(1)
}

// largeKinds are the kinds that a large cost can be had of.
var largeKinds = []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
	algorithms.SlidingWindowLog, algorithms.TokenBucket}

// hardSeeds are those of which some stories were not served in time, or lost tokens, before there was
// a rule for it.
var hardSeeds = []uint64{22, 25, 27, 30, 42, 43, 45, 48, 52, 60, 84, 86, 109, 289}

// forLarge plays a story on each kind, with limits of an hour and a minute and other names of the
// bucket.
func forLarge(t *testing.T, kinds []algorithms.Kind, parts []quantity.Units, story func(t *testing.T, c *cluster)) {
	seeds := []uint64{0, 1, 2, 3}
	if !testing.Short() {
		seeds = append([]uint64{0, 1, 2, 3, 4, 5, 6, 7}, hardSeeds...)
	}
	for _, kind := range kinds {
		for _, window := range []int64{60 * allocator.Second, 3600 * allocator.Second} {
			t.Run(fmt.Sprint(kind, " ", window/allocator.Second, " s"), func(t *testing.T) {
				for _, seed := range seeds {
					c := newClusterOf(t, seed, kind, window, parts...)
					c.bucket.ID = fmt.Sprint("b", seed)
					// The cell is young.
					c.run(quantity.NodeTime(int64(c.now)/window*window + window + allocator.Second))
					c.quiet(Options{}, kind == algorithms.TokenBucket)
					c.run(c.now.Add(c.rand.Int64N(5 * allocator.Second)))
					story(t, c)
				}
			})
		}
	}
}

// TestALargeCostIsServed: a cost above the region's own part is admitted with the second attempt, a
// second after the first, while nobody else wants anything.
func TestALargeCostIsServed(t *testing.T) {
	for _, cost := range []quantity.Units{500, 900} {
		t.Run(fmt.Sprint(cost), func(t *testing.T) {
			forLarge(t, largeKinds, []quantity.Units{400, 400, 200}, func(t *testing.T, c *cluster) {
				at := 0
				c.regions["us"].attempts(cost, 8, func(n int) { at = n })
				c.run(c.now + 9*allocator.Second)
				if at == 0 || at > 2 {
					t.Errorf("%s: served at attempt %d", c.bucket.ID, at)
				}
				c.intact(t)
			})
		})
	}
}

// TestOneOfSeveralLargeCostsIsServed: regions that each want more than half of the limit do not
// swap it for ever. One is served with its third attempt at the latest. Tokens of which several
// regions have to lend are not promised: what one lends in vain is lost to all.
func TestOneOfSeveralLargeCostsIsServed(t *testing.T) {
	for _, parts := range [][]quantity.Units{{500, 500}, {400, 400, 200}, {334, 333, 333}} {
		for _, cost := range []quantity.Units{510, 600, 700, 900} {
			t.Run(fmt.Sprint(cost, " of ", parts), func(t *testing.T) {
				forLarge(t, largeKinds, parts, func(t *testing.T, c *cluster) {
					at := 0
					for _, name := range c.names {
						c.after(c.rand.Int64N(allocator.Second), func() {
							c.regions[name].attempts(cost, 8, func(n int) {
								if at == 0 {
									at = n
								}
							})
						})
					}
					c.run(c.now + 11*allocator.Second)
					if at == 0 || at > 3 {
						t.Errorf("%s: served at attempt %d", c.bucket.ID, at)
					}
					c.intact(t)
				})
			})
		}
	}
}

// TestALargeCostIsKeptFromOthers: what a region has gathered for a large cost others do not get for
// small ones of the same cell, while its caller waits to come again.
func TestALargeCostIsKeptFromOthers(t *testing.T) {
	kinds := []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter}
	forLarge(t, kinds, []quantity.Units{500, 500}, func(t *testing.T, c *cluster) {
		us, eu := c.regions["us"], c.regions["eu"]
		at := 0
		us.attempts(900, 2, func(n int) { at = n })
		c.run(c.now + allocator.Second/5)
		for range 40 {
			c.after(c.rand.Int64N(allocator.Second*4/5), func() { eu.decide(10) })
		}
		if c.run(c.now + 2*allocator.Second); at != 2 {
			t.Errorf("%s: served at attempt %d", c.bucket.ID, at)
		}
	})
}

// TestRightsAreLentAgain: what a region has given back it may borrow again in the same cell, and
// what came for a large cost that does not come again goes to others. Each region asks once, in
// turns.
func TestRightsAreLentAgain(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter} {
		t.Run(string(kind), func(t *testing.T) {
			c := newClusterOf(t, 1, kind, 3600*allocator.Second, 500, 500)
			c.run(quantity.NodeTime(int64(c.now)/c.bucket.Window*c.bucket.Window + c.bucket.Window + allocator.Second))
			c.quiet(Options{}, false)
			for turn := range 6 {
				r := c.regions[c.names[turn%2]]
				r.whole(900, func(bool) {})
				c.run(c.now + allocator.Second)
				i := r.store.Inspect(quantity.StoreTime(r.time()), algorithms.Inspect{Fence: r.guard(),
					Target: algorithms.Target{Key: r.bucket.ID, Terms: r.terms()}})
				if i.Free < 900 {
					t.Fatalf("turn %d: %s has %d for a cost of 900", turn, r.name, i.Free)
				}
				c.run(c.now + 2*allocator.Second)
			}
		})
	}
}

// forTokens plays a story with a token bucket of two regions, some times.
func forTokens(story func(c *cluster, us, eu *testRegion)) {
	for seed := range uint64(20) {
		c := newClusterOf(nil, seed, algorithms.TokenBucket, 3600*allocator.Second, 500, 500)
		c.bucket.ID = fmt.Sprint("b", seed)
		c.run(quantity.NodeTime(int64(c.now)/c.bucket.Window*c.bucket.Window + c.bucket.Window + allocator.Second))
		c.quiet(Options{}, true)
		c.run(c.now.Add(c.rand.Int64N(allocator.Second)))
		story(c, c.regions["us"], c.regions["eu"])
	}
}

// TestTokensOfALargeCostAreLentWhole: a lender that has fewer tokens than a large cost lacks lends
// none, for they would be lost at the cell's end.
func TestTokensOfALargeCostAreLentWhole(t *testing.T) {
	forTokens(func(c *cluster, us, eu *testRegion) {
		eu.whole(450, func(bool) {})
		us.whole(600, func(admitted bool) {
			if admitted {
				t.Errorf("%s: 600 of 550 are admitted", c.bucket.ID)
			}
		})
		c.run(c.now + 3*allocator.Second)
		c.intact(t)
	})
}

// TestManyThatWaitTellOnce: however many requests wait for a large cost of tokens, each peer is told
// once in a round trip.
func TestManyThatWaitTellOnce(t *testing.T) {
	c := newClusterOf(t, 1, algorithms.TokenBucket, 3600*allocator.Second, 400, 400, 200)
	c.run(quantity.NodeTime(int64(c.now)/c.bucket.Window*c.bucket.Window + c.bucket.Window + allocator.Second + 1))
	c.quiet(Options{}, true)
	us := c.regions["us"]
	before := us.machine.Stats().Asks
	for range 100 {
		c.after(c.rand.Int64N(c.net.delay), func() { us.whole(900, func(bool) {}) })
	}
	c.run(c.now + quantity.NodeTime(2*c.net.delay))
	if asks := us.machine.Stats().Asks - before; asks < 2 || asks > 4 {
		t.Errorf("two peers are asked %d times for 100 requests", asks)
	}
}

// TestTokensAreNotLentAhead: after a large cost that this region had the tokens for, it borrows
// none for the next one, which may never come.
func TestTokensAreNotLentAhead(t *testing.T) {
	forTokens(func(c *cluster, us, _ *testRegion) {
		us.whole(450, func(bool) {})
		c.run(c.now + 3*allocator.Second)
		c.intact(t)
		if s := c.stats(); s.BurstLent > 0 {
			t.Errorf("%s: %d tokens are lent", c.bucket.ID, s.BurstLent)
		}
	})
}

// intact fails if tokens were destroyed: what is left in all regions, and what was admitted, is
// less than there was.
func (c *cluster) intact(t *testing.T) {
	t.Helper()
	if c.bucket.Kind != algorithms.TokenBucket {
		return
	}
	var left, admitted quantity.Units
	for _, r := range c.regions {
		i := r.store.Inspect(quantity.StoreTime(r.time()),
			algorithms.Inspect{Fence: r.guard(), Target: algorithms.Target{Key: r.bucket.ID, Terms: r.terms()}})
		left, admitted = left+i.Free, admitted+r.admitted
	}
	if lost := c.bucket.Limit - left - admitted; lost > 0 {
		t.Errorf("%s: %d tokens are lost", c.bucket.ID, lost)
	}
}
