//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestClockTakesTheQuickestAnswer: the estimate comes from the quickest answer of this half minute
// and the one before.
func TestClockTakesTheQuickestAnswer(t *testing.T) {
	const s = allocator.Second
	// theirs is how far the peer's clock is ahead of ours when the answer arrives.
	type answer struct {
		at                quantity.NodeTime
		roundTrip, theirs int64
	}
	for name, x := range map[string]struct {
		answers []answer
		now     quantity.NodeTime
		apart   int64
		known   bool
	}{
		"none":    {nil, s, 0, false},
		"one":     {[]answer{{100 * s, 80, 1000}}, 100 * s, 1040, true},
		"behind":  {[]answer{{100 * s, 80, -1000}}, 100 * s, -960, true},
		"at once": {[]answer{{100 * s, 0, 1000}}, 100 * s, 1000, true},
		"a slower one later": {[]answer{{100 * s, 80, 1000}, {101 * s, 90, 2000}},
			101 * s, 1040, true},
		"a quicker one later": {[]answer{{100 * s, 80, 1000}, {101 * s, 60, 2000}},
			101 * s, 2030, true},
		"as quick later": {[]answer{{100 * s, 80, 1000}, {101 * s, 80, 2000}},
			101 * s, 2040, true},
		"half a minute ago, a slower now": {[]answer{{100 * s, 80, 1000}, {131 * s, 90, 2000}},
			131 * s, 1040, true},
		"half a minute ago, nothing since": {[]answer{{100 * s, 80, 1000}}, 131 * s, 1040, true},
		"a minute ago, a slower since": {[]answer{{100 * s, 80, 1000}, {131 * s, 90, 2000},
			{162 * s, 95, 3000}}, 162 * s, 2045, true},
		"a minute ago, nothing since": {[]answer{{100 * s, 80, 1000}}, 161 * s, 0, false},
	} {
		var c clock
		for _, a := range x.answers {
			ours := quantity.StoreTime(a.at + 7)
			c.add(ours.Add(a.theirs), ours, a.at.Add(-a.roundTrip), a.at)
		}
		if got, known := c.apart(x.now); got != x.apart || known != x.known {
			t.Errorf("%s: %d, %t, want %d, %t", name, got, known, x.apart, x.known)
		}
	}
}

// TestRegionsLearnHowFarTheirClocksAreApart: pings alone measure it, to within half a round trip of
// a network that is slower in one direction.
func TestRegionsLearnHowFarTheirClocksAreApart(t *testing.T) {
	c := newCluster(t, 1, allocator.Second, 400, 400, 200)
	c.regions["eu"].offset, c.regions["ap"].offset = 300_000, -70_000
	c.run(c.now + allocator.Second)
	for _, age := range c.regions["us"].machine.Ages(c.now) {
		if age.ClockKnown {
			t.Errorf("us says how far %s is apart before either has seen its store", age.Peer)
		}
	}
	c.net.late = 30
	c.demand(Options{}, 100, 100, 50)
	c.run(c.now + 10*allocator.Second)
	for _, name := range c.names {
		for _, age := range c.regions[name].machine.Ages(c.now) {
			want := c.regions[age.Peer].offset - c.regions[name].offset
			if off := age.ClockApart - want; !age.ClockKnown || max(off, -off) > c.net.delay {
				t.Errorf("%s takes %s to be %d us ahead (%t), it is %d", name, age.Peer,
					age.ClockApart, age.ClockKnown, want)
			}
		}
	}
}

// TestTimesThatCannotBeAreIgnored: the machine ignores impossible times of a peer, and every time
// that arrives before it has seen our own store's time.
func TestTimesThatCannotBeAreIgnored(t *testing.T) {
	for _, x := range []struct {
		at    quantity.StoreTime
		seen  bool
		known bool
	}{{0, true, false}, {-1, true, false}, {maxTime + 1, true, false}, {maxTime, true, true},
		{5, true, true}, {5, false, false}} {
		b, m, now := long(allocator.Second)
		if x.seen {
			m.Step(now, Observed{Bucket: b, Now: quantity.StoreTime(now),
				State: algorithms.State{Share: 400}})
		}
		now += allocator.Second
		for _, call := range m.Step(now, Tick{Jitter: allocator.PPM}).Calls {
			m.Step(now, Answered{ID: call.ID, Reply: Reply{From: call.Peer, At: x.at,
				Grants: make([]Grant, len(call.Message.Asks))}})
		}
		if got := m.Ages(now)[0].ClockKnown; got != x.known {
			t.Errorf("a time of %d, our store seen %t: known %t", x.at, x.seen, got)
		}
	}
}

// TestAReplyIsNoEarlierThanItsDebits: a store time that the machine hears between the debit and the
// reply may be older than the debit.
func TestAReplyIsNoEarlierThanItsDebits(t *testing.T) {
	c, eu := met(t)
	out := eu.asks(Ask{Bucket: "b", Cell: eu.cell(), Lent: 10}, nil)
	if len(out.Lend) != 1 {
		t.Fatalf("%+v", out)
	}
	debited := quantity.StoreTime(c.now + 2000)
	given := algorithms.Given{Head: algorithms.Head{Now: debited}, Row: algorithms.Row{Lent: 10},
		State: eu.machine.views["b"].state}
	eu.machine.Step(c.now, Lent{ID: 1, Given: []algorithms.Given{given}})
	eu.machine.Step(c.now, Observed{Bucket: eu.bucket, Requests: allocator.Requests{Admitted: 1}, State: given.State,
		Now: debited - 15_000})
	replies := eu.machine.Step(c.now, Recorded{ID: 1, OK: true}).Replies
	if len(replies) != 1 || replies[0].Reply.At < debited {
		t.Errorf("debited at %d: %+v", debited, replies)
	}
}

// TestClocksWithinTheGuard: the sliding kinds are exact in real time as long as clocks are no
// further apart than the clock margin. The log is judged by one real clock. The counter counts by
// cells, and each region's cells follow its own clock. So for the counter the sum of the regions'
// estimates at one moment, each by its own clock, must not exceed the limit.
func TestClocksWithinTheGuard(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			const seeds = 27
			var sum tally
			for seed := range seeds * times() {
				c := hostileCluster(t, seed, kind, 1)
				c.setApart(c.rand.Int64N(algorithms.ClockMargin+1),
					c.rand.Int64N(algorithms.ClockMargin+1),
					c.rand.Int64N(algorithms.ClockMargin+1))
				c.hostility(false)
				c.survive(seed, 15*allocator.Second)
				sum.add(c)
			}
			sum.mustBeHard(t, kind, quantity.Units(seeds*times()))
		})
	}
}

// setApart puts the clocks of us, eu and ap ahead of the real one, for good.
func (c *cluster) setApart(ahead ...int64) {
	c.apart = true
	for i, name := range c.names {
		c.regions[name].offset = ahead[i]
	}
	if c.bucket.Kind == algorithms.SlidingWindowCounter {
		c.judge = nil // it counts by the cells of one clock
	}
}
