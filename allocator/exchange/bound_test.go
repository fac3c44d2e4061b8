package exchange

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/oracle"
)

const second = allocator.Second

// clockCase is two regions, half and half, whose clocks are apart.
type clockCase struct {
	kind   algorithms.Kind
	limit  int64
	window int64
	apart  int64 // eu ahead of us
}

func (x clockCase) String() string {
	return fmt.Sprintf("%s, %d in %v, %v apart", x.kind, x.limit, microseconds(x.window), microseconds(x.apart))
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// printed returns what quotad limits bound says of it.
func (x clockCase) printed() int64 {
	burst := int64(0)
	if x.kind.Bucket() {
		burst = x.limit
	}
	e := allocator.Exposure{Limit: x.limit, Window: x.window, Cell: algorithms.CellLength(x.kind, x.window), Sliding: x.kind.Sliding(),
		Bucket: x.kind.Bucket(), Tokens: x.kind == algorithms.TokenBucket, Lending: 950_000, Borrowing: -1, Nodes: 1,
		Clock: x.apart, Guard: algorithms.ClockGuard, Splits: []allocator.Split{allocator.SplitOf(x.limit, burst, []int64{1, 1}, 0, false)}}
	for _, b := range allocator.Bounds(e) {
		if b.Cause == "clocks-apart" {
			return b.Most
		}
	}
	panic("no bound about clocks")
}

// act is what a region does from one time to another, each hundredth of a second; times count from the beginning of a
// cell of us.
type act struct {
	region   string
	from, to int64
	do       func(r *testRegion)
}

// rush asks for more than there is, one unit after another.
func rush(r *testRegion) { r.decide(r.bucket.Limit) }

// spend takes what there is and shows no further demand, as a node does that knows no more than that.
func spend(r *testRegion) {
	d, admitted := inUnits(r.store, r.time(), r.guard(), r.terms(), r.bucket.Limit)
	if d.Status == algorithms.StatusOK {
		r.tell(admitted, 0, d)
		if Debug != nil { Debug(r, admitted, d) }
	}
}
var Debug func(*testRegion, int64, algorithms.Decided)

// need has a request wait for nearly all there is, whose caller is gone when it comes.
func need(r *testRegion) {
	d := r.store.Inspect(r.time(), algorithms.Inspect{Guard: r.guard(), Key: "b", Terms: r.terms()})
	r.step(Wanted{Bucket: r.bucket, Units: r.bucket.Limit * 19 / 20, State: d.State, Now: d.Now})
}

// play returns how many units were admitted above what is promised of real time.
func (x clockCase) play(t *testing.T, seed uint64, acts ...act) (most int64) {
	c := newClusterOf(t, seed, x.kind, x.window, x.limit/2, x.limit/2)
	c.apart = true
	c.regions["eu"].offset = x.apart
	c.limit = oracle.Limit{Limit: c.bucket.Limit, Burst: c.burst(), Window: microseconds(x.window), Algorithm: string(x.kind)}
	switch x.kind {
	case algorithms.FixedWindow: // an interval as long as a window may see two of them
		c.limit.Algorithm, c.limit.Limit = string(algorithms.SlidingWindowLog), 2*c.bucket.Limit
		c.judge = oracle.New(c.limit)
	case algorithms.SlidingWindowCounter: // the estimates add up, each by its region's clock
	default:
		c.judge = oracle.New(c.limit)
	}
	if x.kind == algorithms.LeakyBucket { // a queue whose turns lie far ahead has no use for what others lend
		c.bucket.Bursts["us"], c.bucket.Bursts["eu"] = 10, 10
		c.limit.Burst = 20
		c.judge = oracle.New(c.limit)
	}
	cell := c.bucket.Cell
	zero, until := (c.now/cell+2)*cell, int64(0)
	for _, a := range acts {
		until = max(until, a.to)
	}
	sums := map[string]int64{}
	if x.kind == algorithms.LeakyBucket { Debug = func(r *testRegion, n int64, d algorithms.Decided) { sums[fmt.Sprintf("%s %03d S=%d", r.name, (c.now-zero)/250000, d.Buckets[0].Share)] += n } }
	defer func() { t.Log(sums) }()
	for ; c.now < zero+until; c.run(c.now + 10_000) {
		for _, a := range acts {
			if now := c.now - zero; now < a.from || now >= a.to {
				continue
			}
			a.do(c.regions[a.region])
		}
		if x.kind == algorithms.SlidingWindowCounter {
			most = max(most, allocatorUp(c.estimate(), x.window)-x.limit)
		}
		for cell, units := range c.admit {
			if x.kind == algorithms.FixedWindow && units > x.limit {
				t.Fatalf("cell %d admitted %d of %d", cell, units, x.limit)
			}
		}
	}
	for _, n := range c.names { t.Log(n, c.regions[n].counted, zero/cell) }
	if c.judge != nil {
		t.Log(c.judge.Verdict()); most = c.judge.Verdict().MaxExcess
	}
	return most
}

func allocatorUp(a, b int64) int64 { return (a + b - 1) / b }

func TestExplore(t *testing.T) {
	const s = second
	for _, x := range []struct {
		clockCase
		acts []act
	}{
		{clockCase{algorithms.FixedWindow, 1000, 10 * s, 5 * s}, []act{{"us", -9*s, -9*s+10000, need}, {"us", -s/5, 2 * s, rush}, {"eu", 5 * s, 9700_000, rush}}},
		{clockCase{algorithms.SlidingWindowCounter, 1000, 10 * s, 5 * s}, []act{{"us", s/2, 4 * s, rush}, {"eu", 9 * s, 10500_000, rush}}},
		{clockCase{algorithms.SlidingWindowLog, 1000, 60 * s, 5 * s}, []act{{"us", s/10, s*2/10, need}, {"us", 5900_000, 5910_000, spend}, {"eu", 61_200_000, 64 * s, spend}}},
		{clockCase{algorithms.TokenBucket, 1000, 10 * s, s/2}, []act{{"us", s/20, s*1/10, need}, {"us", 970_000,980_000, spend}, {"eu", 970_000,980_000, spend},{"us", 980_000, 1*s+200000, rush},{"us", 1200_000, 3*s, spend}, {"eu", 1 * s, 3*s, spend}}},
		{clockCase{algorithms.TokenBucket, 1000, 10 * s, s/2}, []act{{"us", s/20, s*1/10, need}, {"us", 970_000,980_000, spend}, {"eu", 970_000,980_000, spend},{"us", 980_000, 1*s+400000, rush},{"us", 1400_000, 5*s, spend}, {"eu", 1 * s, 5*s, spend}}},
		{clockCase{algorithms.TokenBucket, 1000, 10 * s, s/2}, []act{{"us", s/20, s*1/10, need}, {"us", 970_000,980_000, spend}, {"eu", 970_000,980_000, spend},{"us", 980_000, 3*s+400000, rush},{"us", 3400_000, 5*s, spend}, {"eu", 1 * s, 5*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 500000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 500000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3500000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 500000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 4000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 700000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 700000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3500000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 700000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 4000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 900000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 900000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3500000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 900000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 4000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 1200000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 1200000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3500000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 1200000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 4000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 1500000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3000000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 1500000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 3500000, 8*s, spend}}},
		{clockCase{algorithms.LeakyBucket, 1000, 10 * s, 1500000}, []act{{"us", -s, 4300000, rush},{"us", 4300000, 7*s, spend}, {"eu", 4000000, 8*s, spend}}},
	} {
		t.Logf("%-55s printed %5d provoked %5d", x, x.printed(), x.play(t, 1, x.acts...))
	}
}
