//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// demand starts load on the regions, in units a second in the order us, eu, ap.
func (c *cluster) demand(o Options, rates ...quantity.MilliRate) {
	for i, name := range c.names {
		r := c.regions[name]
		r.options = o
		r.start()
		r.rate = rates[i]
		r.load()
	}
}

// demandFor changes the load to so many units in so many seconds, in the order us, eu, ap,
// beginning it where there is none.
func (c *cluster) demandFor(o Options, seconds int64, units ...quantity.Units) {
	for i, name := range c.names {
		r := c.regions[name]
		if r.per == 0 {
			r.options = o
			r.start()
			r.load()
		}
		r.rate, r.per = quantity.MilliRate(units[i]), seconds
	}
}

// TestSharesFollowDemand: after a step of demand a region that runs short has its first borrowed
// units, or rate, within a round trip and a tick. It has 95 % of what it wants of the cell within
// two round trips and a tick.
//
// A leaky bucket's region cannot lend of a cell while a turn that it has promised lies ahead, and
// the more it has lent, the likelier that is. Its share follows at the latest when the next cell
// opens, because rights of that are asked for a cell ahead.
func TestSharesFollowDemand(t *testing.T) {
	const into = 100_000 // the step comes a tenth into a cell
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.TokenBucket,
		algorithms.LeakyBucket} {
		t.Run(string(kind), func(t *testing.T) {
			for seed := range uint64(40) {
				c := newClusterOf(t, seed, kind, allocator.Second, 400, 400, 200)
				before := []quantity.MilliRate{380, 380, 180}
				// A bucket runs short at once, so us must already know by then what others do not
				// need.
				if kind.Bucket() {
					c.bucket.Bursts = map[string]quantity.Units{"us": 40, "eu": 40, "ap": 20}
					before = []quantity.MilliRate{380, 60, 20}
				}
				c.demand(Options{}, before...)
				c.run(c.now + 3*allocator.Second + into)
				for i, name := range c.names {
					c.regions[name].rate = []quantity.MilliRate{900, 60, 20}[i]
				}
				c.measure(seed, func(cell quantity.Cell) quantity.Units {
					if kind == algorithms.FixedWindow && cell == 0 {
						return (380*into + 900*(allocator.Second-into)) / allocator.Second
					}
					return 900
				})
			}
		})
	}
}

// measure watches the share of us, whose demand has just risen to what wants returns for each cell
// from now on.
func (c *cluster) measure(seed uint64, wants func(cell quantity.Cell) quantity.Units) {
	us := c.regions["us"]
	before, cell := us.machine.views["b"].state.Share, quantity.Cell(int64(c.now)/c.bucket.Cell)
	denied := us.denied
	var short, gained, whole quantity.NodeTime
	for end := c.now + 2*allocator.Second; c.now < end && whole == 0; {
		c.run(c.now + 1000)
		share := us.machine.views["b"].state.Share
		if short == 0 && us.denied > denied {
			short = c.now
		}
		if gained == 0 && share > before {
			gained = c.now
		}
		if whole == 0 && share*20 >= wants(quantity.Cell(int64(c.now)/c.bucket.Cell)-cell)*19 {
			whole = c.now
		}
	}
	roundTrip := 2 * c.net.delay
	if c.bucket.Kind == algorithms.LeakyBucket && whole > 0 &&
		int64(whole) <= int64((cell+1).OpensAt(c.bucket.Cell)+Interval/10) {
		return
	}
	switch {
	case gained == 0 || whole == 0:
		c.t.Errorf("seed %d: the share never came", seed)
	case short > 0 && gained.Sub(short) > roundTrip+Interval:
		c.t.Errorf("seed %d: first units %d us after running short", seed, gained.Sub(short))
	case short > 0 && whole.Sub(short) > 2*roundTrip+Interval:
		c.t.Errorf("seed %d: 95 %% of the share %d us after running short", seed, whole.Sub(short))
	}
}

// TestUtilisation: in steady state little of the limit is left unused where anybody wants it,
// however it is spread.
func TestUtilisation(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			worst := quantity.Units(100_000)
			for _, rates := range [][]quantity.MilliRate{{900, 60, 20}, {900, 380, 20},
				{700, 700, 350}, {500, 500, 100}, {0, 0, 940}, {1500, 0, 0}} {
				c := newClusterOf(t, 1, kind, allocator.Second, 400, 400, 200)
				c.pooled = new(quantity.Units)
				c.demand(Options{}, rates...)
				c.run(c.now + 3*allocator.Second)
				ours, pooled := c.admitted(), *c.pooled
				c.run(c.now + 10*allocator.Second)
				got, want := c.admitted()-ours, *c.pooled-pooled
				worst = min(worst, got*100_000/want)
				if got*100 < want*95 {
					t.Errorf("demand %v: %d admitted of %d that one pooled limiter would have",
						rates, got, want)
				}
			}
			t.Logf("at worst %.1f %% of the pooled limiter", float64(worst)/1000)
		})
	}
}

func (c *cluster) admitted() (sum quantity.Units) {
	for _, units := range c.admit {
		sum += units
	}
	return sum
}

// TestHintsSpareRefusedAsks: if every region wants more than there is, regions that hear each
// other's hints do not ask.
func TestHintsSpareRefusedAsks(t *testing.T) {
	var refused [2]int64
	for i, o := range []Options{{}, {WithoutHints: true}} {
		c := newCluster(t, 1, allocator.Second, 400, 400, 200)
		c.demand(o, 700, 700, 350)
		for end := c.now + 20*allocator.Second; c.now < end; {
			c.run(c.queue[0].at)
			suite.Must(t, c.invariants())
		}
		refused[i] = c.stats().AsksRefused
	}
	t.Logf("refused asks: %d with hints, %d without", refused[0], refused[1])
	if refused[1] < 3*refused[0] || refused[1] == 0 {
		t.Errorf("refused asks: %d with hints, %d without", refused[0], refused[1])
	}
}

// TestACutLeavesTheFixedSplit: when no transfers arrive, every region is at its entitlement from
// the first cell on for which nothing was promised. Regions that still hear each other go on
// trading.
func TestACutLeavesTheFixedSplit(t *testing.T) {
	c := newCluster(t, 1, allocator.Second, 400, 400, 200)
	c.demand(Options{}, 900, 60, 350)
	c.run(c.now + 5*allocator.Second + 100_000)
	c.isolate("us", true)
	c.run(c.now/allocator.Second*allocator.Second + 2*allocator.Second - 1)
	if share := c.regions["us"].machine.views["b"].state.Share; share != 400 {
		t.Errorf("us holds %d in the first whole cell after the cut, its fixed split is 400", share)
	}
	c.run(c.now + 4*allocator.Second)
	for _, age := range c.regions["us"].machine.Ages(c.now) {
		if !age.Degraded {
			t.Errorf("us is not degraded towards %s, whose last answer is %d us old", age.Peer,
				age.Age)
		}
	}
	for _, age := range c.regions["eu"].machine.Ages(c.now) {
		if age.Degraded != (age.Peer == "us") {
			t.Errorf("eu: degraded %t towards %s", age.Degraded, age.Peer)
		}
	}
	if share := c.regions["ap"].machine.views["b"].state.Share; share < 340 {
		t.Errorf("ap holds %d: it no longer trades with eu", share)
	}
	c.isolate("us", false)
	c.run(c.now + 3*allocator.Second)
	if share := c.regions["us"].machine.views["b"].state.Share; share < 550 {
		t.Errorf("us holds %d three seconds after the heal", share)
	}
}

// TestLendingIntoTheVoidStops: a region hears asks, but nobody answers its own calls. It stops
// lending.
func TestLendingIntoTheVoidStops(t *testing.T) {
	c := newCluster(t, 1, allocator.Second, 400, 400, 200)
	c.demand(Options{}, 900, 60, 20)
	c.run(c.now + 3*allocator.Second)
	c.net.cut[[2]string{"eu", "us"}] = true // us hears nothing from eu, eu hears us
	c.run(c.now + 5*allocator.Second)
	eu := c.regions["eu"]
	for range 20 {
		c.run(c.now + allocator.Second/4)
		i := eu.store.Inspect(quantity.StoreTime(eu.time()), algorithms.Inspect{Fence: eu.guard(),
			Target: algorithms.Target{Key: "b", Terms: eu.terms()}})
		for _, row := range i.Rows {
			if row.Peer == "us" && row.Lent > 0 {
				t.Fatalf("eu lent %d units of cell %d that us will never hear of", row.Lent,
					row.Cell)
			}
		}
	}
}
