//go:build !race

package exchange

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/quantity"
)

// apartCase is a limit of 1000, half of it in region us and half in eu. The clock of eu is ahead.
type apartCase struct {
	kind          algorithms.Kind
	burst         quantity.Units // of both together
	window, ahead time.Duration
	acts          []act
}

// act is what a region does every hundredth of a second from one time to another. Times count from
// the beginning of a cell of us.
type act struct {
	region   string
	from, to time.Duration
	do       func(r *testRegion)
}

// rush asks for more than there is, one unit after another.
func rush(r *testRegion) { r.decide(r.bucket.Limit) }

// spend takes what there is, without a demand for more. A node that the plan does not know of would
// do that.
func spend(r *testRegion) {
	d, admitted := inUnits(r.store, r.time(), r.guard(), r.terms(), r.bucket.Limit)
	if d.Status != algorithms.StatusOK {
		return
	}
	r.admit[int64(d.Buckets[0].Cell)] += admitted
	r.counted[int64(d.Buckets[0].Cell)] += admitted
	r.tell(admitted, 0, d)
}

// need has a request wait for nearly all there is. Its caller is gone when the rights come.
func need(r *testRegion) {
	d := r.store.Inspect(quantity.StoreTime(r.time()), algorithms.Inspect{Fence: r.guard(),
		Target: algorithms.Target{Key: "b", Terms: r.terms()}})
	r.step(Wanted{Bucket: r.bucket, Units: r.bucket.Limit * 19 / 20, State: d.State, Now: d.Now})
}

// apartCases returns cases that borrow by one clock and spend by the other, as late as possible.
func apartCases() []apartCase {
	const ms = time.Millisecond
	hoard := func(from, rate, last time.Duration) []act {
		return []act{{"us", 50 * ms, 100 * ms, need}, {"us", 970 * ms, 980 * ms, spend},
			{"eu", 970 * ms, 980 * ms, spend},
			{"us", from, rate, rush}, {"us", rate, last, spend}, {"eu", time.Second, last, spend}}
	}
	// A rate is borrowed only from the point of the cell on at which the lender gave it up, so it
	// must have been promised before the cell.
	promised := func(from time.Duration) []act {
		return []act{{"us", -3000 * ms, 600 * ms, rush}, {"us", 600 * ms, 7000 * ms, spend},
			{"eu", from, 8000 * ms, spend}}
	}
	return []apartCase{
		{algorithms.FixedWindow, 0, 10 * time.Second, 5 * time.Second,
			[]act{{"us", -9000 * ms, -8990 * ms, need},
				{"us", -200 * ms, 2000 * ms, rush}, {"eu", 5000 * ms, 9700 * ms, rush}}},
		{algorithms.SlidingWindowCounter, 0, 10 * time.Second, 5 * time.Second,
			[]act{{"us", 500 * ms, 4000 * ms, rush}, {"us", 4000 * ms, 9900 * ms, spend},
				{"eu", 9000 * ms, 10500 * ms, rush}}},
		{algorithms.SlidingWindowLog, 0, time.Minute, 5 * time.Second,
			[]act{{"us", 100 * ms, 200 * ms, need}, {"us", 5900 * ms, 5910 * ms, spend},
				{"eu", 61200 * ms, 64000 * ms, spend}}},
		{algorithms.TokenBucket, 20, time.Second, 200 * ms, promised(-1000 * ms)},
		{algorithms.LeakyBucket, 20, time.Second, 500 * ms, promised(2500 * ms)},
		// Five cells apart nothing can be borrowed, so nothing is exceeded.
		{algorithms.FixedWindow, 0, time.Second, 5 * time.Second,
			[]act{{"us", -900 * ms, 2000 * ms, rush}, {"eu", -900 * ms, 4000 * ms, rush}}},
		{algorithms.TokenBucket, 1000, 10 * time.Second, 5 * time.Second,
			hoard(980*ms, 3400*ms, 9000*ms)},
		{algorithms.LeakyBucket, 20, 10 * time.Second, 5 * time.Second,
			[]act{{"us", -1000 * ms, 4300 * ms, rush}, {"us", 4300 * ms, 12000 * ms, spend},
				{"eu", 3500 * ms, 12000 * ms, spend}}},
	}
}

// TestBoundsOfClocksAreMet: with clocks apart the regions admit more in real time than is promised.
// The excess is at most what quotad limits bound prints, and at least half of that (for a token
// bucket two fifths). In labelled windows nothing is exceeded.
func TestBoundsOfClocksAreMet(t *testing.T) {
	for _, x := range apartCases() {
		name := fmt.Sprintf("%s, 1000 in %v, clocks %v apart", x.kind, x.window, x.ahead)
		t.Run(name, func(t *testing.T) {
			printed, excess := x.printed(t), x.play(t)
			t.Logf("printed %4d, provoked %4d", printed, excess)
			least := printed / 2
			if x.kind == algorithms.TokenBucket {
				least = printed * 2 / 5
			}
			if excess > printed || excess < least {
				t.Errorf("%d above what is promised, printed is %d", excess, printed)
			}
		})
	}
}

// printed returns the bound that is printed for clocks apart.
func (x apartCase) printed(t *testing.T) quantity.Units {
	window := x.window.Microseconds()
	e := allocator.Exposure{Kind: x.kind, Limit: 1000, Window: window,
		Cell:    algorithms.CellLength(x.kind, window),
		Lending: 950_000, Borrowing: -1, Nodes: 1, Clock: x.ahead.Microseconds(),
		ClockMargin: algorithms.ClockMargin,
		Splits: []allocator.Split{allocator.SplitOf(1000, x.burst, []quantity.Units{1, 1}, 0,
			false)}}
	for _, b := range allocator.Bounds(e) {
		if b.Cause == "clocks-apart" {
			return b.Most
		}
	}
	t.Fatal("there is no bound about clocks")
	return 0
}

// cluster builds the regions and a judge of real time. All that a fixed window promises of real
// time is that an interval as long as a window sees no more than two windows' limits.
func (x apartCase) cluster(t *testing.T) *cluster {
	c := newClusterOf(t, 1, x.kind, x.window.Microseconds(), 500, 500)
	for name := range c.bucket.Bursts {
		c.bucket.Bursts[name] = x.burst / 2
	}
	c.judged()
	c.setApart(0, x.ahead.Microseconds())
	if x.kind == algorithms.FixedWindow {
		c.limit = oracle.Limit{Limit: int64(2 * c.bucket.Limit), Window: x.window,
			Algorithm: string(algorithms.SlidingWindowLog)}
		c.judge = oracle.New(c.limit)
	}
	return c
}

// play returns how many units were admitted above the promise for real time.
func (x apartCase) play(t *testing.T) (most quantity.Units) {
	const step = 10_000
	c := x.cluster(t)
	zero, until := (int64(c.now)/c.bucket.Cell+2)*c.bucket.Cell, int64(0)
	for _, a := range x.acts {
		until = max(until, a.to.Microseconds())
	}
	for ; c.now < quantity.NodeTime(zero+until); c.run(c.now + step) {
		for _, a := range x.acts {
			if at := c.now.Add(-zero); at >= quantity.NodeTime(a.from.Microseconds()) &&
				at < quantity.NodeTime(a.to.Microseconds()) {
				a.do(c.regions[a.region])
			}
		}
		if x.kind == algorithms.SlidingWindowCounter {
			most = max(most, (c.estimate()+quantity.Units(c.bucket.Window)-1)/
				quantity.Units(c.bucket.Window)-c.bucket.Limit)
		}
	}
	if c.judge != nil {
		most = quantity.Units(c.judge.Verdict().MaxExcess)
	}
	if x.kind == algorithms.FixedWindow && c.wrong != nil {
		t.Error(c.wrong)
	}
	return most
}

// TestClockBackOverTheEndOfACell: the store's time never goes back, so no finished cell opens again
// and nothing is above the limit, by the store times that decisions carry.
func TestClockBackOverTheEndOfACell(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog,
		algorithms.TokenBucket, algorithms.LeakyBucket} {
		t.Run(string(kind), func(t *testing.T) {
			c := newClusterOf(t, 1, kind, 2*allocator.Second, 500, 500)
			c.judged()
			cell := c.bucket.Cell
			c.run(quantity.NodeTime((int64(c.now)/cell + 1) * cell))
			for begun, back := c.now, false; c.now < begun.Add(6*cell); c.run(c.now + 10_000) {
				if !back && c.now >= begun.Add(cell).Add(cell/10) {
					c.regions["us"].offset, back = -cell, true
				}
				c.regions["us"].decide(20)
				c.regions["eu"].decide(20)
			}
			v := c.judge.Verdict()
			if !v.Holds() || v.CellsChecked < 3 {
				t.Errorf("%v\n%v", v, v.Violations)
			}
		})
	}
}
