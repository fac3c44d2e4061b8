//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// hostility chooses the cluster's faults by its seed. Where the judgement depends on clocks, it
// leaves them alone.
func (c *cluster) hostility(stepping bool) {
	c.net.loss, c.net.duplicate, c.net.late = c.rand.IntN(30), c.rand.IntN(30), c.rand.IntN(20)
	c.net.delay = []int64{5000, 40_000, 40_000, 150_000, 350_000}[c.rand.IntN(5)]
	crash := []int{0, 5, 30}[c.rand.IntN(3)]
	c.losing = []int{0, 20, 60}[c.rand.IntN(3)]
	for _, name := range c.names {
		r := c.regions[name]
		r.crash = crash
		if stepping {
			r.offset = c.rand.Int64N(1_600_000) - 800_000
		}
		r.load()
		c.disturb(r, stepping)
	}
}

// disturb changes a region's demand, clock, links and what is gossiped about it, again and again.
func (c *cluster) disturb(r *testRegion, stepping bool) {
	if c.losing > 0 && c.rand.IntN(c.losing) == 0 {
		r.lose()
	}
	switch c.rand.IntN(7) {
	case 0:
		r.rate = 0
	case 1, 2:
		r.rate, r.per = quantity.MilliRate(c.rand.Int64N(int64(3*c.bucket.Limit))),
			c.bucket.Window/allocator.Second
	case 3:
		if stepping {
			r.offset += c.rand.Int64N(600_000) - 300_000
		}
	case 4:
		c.isolate(r.name, c.rand.IntN(4) == 0)
	case 5:
		c.lie(r)
	case 6:
		r.decide(quantity.Units(c.rand.Int64N(int64(c.bucket.Limit))))
	}
	c.after(c.rand.Int64N(600_000), func() { c.disturb(r, stepping) })
}

// lie gossips nonsense in the name of a region's node.
func (c *cluster) lie(r *testRegion) {
	any := func() quantity.Units { return quantity.Units(c.rand.Int64() - c.rand.Int64()) }
	lie := Hint{Region: r.name, Node: "n1", Bucket: "b",
		Cell: quantity.Cell(int64(r.time())/c.bucket.Cell + c.rand.Int64N(3) - 1), Used: any(),
		Total: any(),
		Rate:  quantity.MilliRate(c.rand.Int64()), Share: quantity.Units(-c.rand.Int64()),
		Spare: quantity.Units(c.rand.Int64()), SpareBurst: any()}
	for _, peer := range r.peers() {
		c.regions[peer].step(Heard{Hint: lie})
	}
}

// times multiplies the seeds of the hostile tests.
func times() uint64 { return suite.Short[uint64](1, 3) }

// tally is what befell all the clusters of a test.
type tally struct {
	Stats
	crashes, losses int
}

func (sum *tally) add(c *cluster) {
	s := c.stats()
	sum.Borrowed += s.Borrowed
	sum.Returned += s.Returned
	sum.BurstBorrowed += s.BurstBorrowed
	for _, r := range c.regions {
		sum.crashes += r.born - 1
		sum.losses += r.losses
	}
}

// survive runs a cluster for the given time. It checks the invariants after every event, and the
// oracle's verdict at the end.
func (c *cluster) survive(seed uint64, length int64) {
	c.t.Helper()
	for end := c.now.Add(length); len(c.queue) > 0 && c.now < end; {
		c.run(c.queue[0].at)
		if err := c.invariants(); err != nil {
			c.t.Fatalf("seed %d, %.3f s: %v", seed, float64(c.now%(1000*allocator.Second))/
				allocator.Second, err)
		}
	}
	if c.judge == nil {
		return
	}
	if v := c.judge.Verdict(); !v.Holds() {
		c.t.Fatalf("seed %d: %s: %v", seed, v, v.Violations)
	}
}

// TestRightsNeverExceedTheLimit: three regions meet a network that loses, repeats, reorders and
// delays beyond a cell, cuts, false hints, demand that jumps, stores that lose everything, and a
// crash at any effect. The invariants are checked after every event, and the oracle judges at the
// end. A fixed window promises something about labels only, so there clocks are apart and step as
// well.
func TestRightsNeverExceedTheLimit(t *testing.T) {
	for _, k := range []struct {
		kind    algorithms.Kind
		seeds   uint64
		windows []int64 // seconds
	}{
		{algorithms.FixedWindow, 36, []int64{1}},
		{algorithms.SlidingWindowCounter, 18, []int64{1, 1, 3}},
		{algorithms.SlidingWindowLog, 18, []int64{1, 3, 6}},
		{algorithms.TokenBucket, 27, []int64{1, 3, 10}},
		{algorithms.LeakyBucket, 18, []int64{1, 3, 10}},
	} {
		t.Run(string(k.kind), func(t *testing.T) {
			t.Parallel()
			var sum tally
			for seed := range k.seeds * times() {
				c := hostileCluster(t, seed, k.kind, k.windows[seed/3%uint64(len(k.windows))])
				c.hostility(k.kind == algorithms.FixedWindow)
				c.survive(seed, 15*allocator.Second)
				sum.add(c)
			}
			sum.mustBeHard(t, k.kind, quantity.Units(k.seeds*times()))
		})
	}
}

// hostileCluster builds a cluster with one of three splits, and a burst that is another.
func hostileCluster(t *testing.T, seed uint64, kind algorithms.Kind, seconds int64) *cluster {
	split := [][]quantity.Units{{400, 400, 200}, {3, 2, 1}, {40, 40, 20}}[seed%3]
	c := newClusterOf(t, seed, kind, seconds*allocator.Second, split...)
	if kind.Bucket() {
		for i, name := range c.names {
			c.bucket.Bursts[name] = [][]quantity.Units{{300, 20, 30}, {2, 1, 1},
				{40, 40, 20}}[seed/3%3][i]
		}
		c.bucket.Tick = algorithms.Tick(kind, max(c.bucket.Limit, c.burst()), c.bucket.Window)
	}
	c.judged()
	return c
}

// mustBeHard fails a test whose runs met too few faults.
func (sum *tally) mustBeHard(t *testing.T, kind algorithms.Kind, seeds quantity.Units) {
	t.Helper()
	t.Logf("%d seeds: %d units borrowed, %d returned, %d tokens borrowed, %d crashes, %d losses",
		seeds, sum.Borrowed, sum.Returned, sum.BurstBorrowed, sum.crashes, sum.losses)
	tokens := kind == algorithms.TokenBucket
	if sum.Borrowed < 50*seeds || sum.Returned < seeds/4 || tokens &&
		sum.BurstBorrowed < seeds ||
		quantity.Units(min(sum.crashes, sum.losses)) < seeds/2 {
		t.Fatal("the test was too easy")
	}
}

// TestACrashAtEachEffect kills the borrower's node, and the lender's, before and after each of its
// effects in turn: the debit, the record, the reply, the credit; of rights, and of burst rights.
func TestACrashAtEachEffect(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.TokenBucket} {
		for _, victim := range []string{"us", "eu"} {
			t.Run(string(kind)+" "+victim, func(t *testing.T) {
				t.Parallel()
				crashAtEachEffect(t, kind, victim)
			})
		}
	}
}

func crashAtEachEffect(t *testing.T, kind algorithms.Kind, victim string) {
	const effects = 60
	reached, tokens := 0, quantity.Units(0)
	for at := 1; at <= effects; at++ {
		c := newClusterOf(t, 1, kind, allocator.Second, 40, 40, 20)
		c.judged()
		c.demand(Options{}, 90, 6, 2)
		r := c.regions[victim]
		r.dieAt = at
		for end := c.now + 6*allocator.Second; c.now < end; {
			c.run(c.queue[0].at)
			if err := c.invariants(); err != nil {
				t.Fatalf("%s died at effect %d: %v", victim, at, err)
			}
		}
		if v := c.judge.Verdict(); !v.Holds() {
			t.Fatalf("%s died at effect %d: %s", victim, at, v)
		}
		if r.effects >= at {
			reached++
		}
		tokens += c.stats().BurstBorrowed
	}
	if reached < effects/2 {
		t.Errorf("%s has so few effects that it died only %d times", victim, reached)
	}
	if kind == algorithms.TokenBucket && tokens < effects {
		t.Errorf("%d tokens were borrowed in %d runs", tokens, effects)
	}
}
