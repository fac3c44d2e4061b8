//go:build !race

package exchange

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/quantity"
)

// offer offers units one by one to a single limiter that owns the whole limit and needs no network.
func (c *cluster) offer(units quantity.Units) {
	if c.pooled == nil {
		return
	}
	if c.pool.Generation == 0 {
		c.pool.Open(quantity.StoreTime(c.now), algorithms.Open{Generation: 1, Epoch: epochForTests})
	}
	terms := c.bucket.Terms("")
	terms.Entitlement, terms.Burst = c.bucket.Limit, c.burst()
	guard := algorithms.Fence{Generation: 1, Epoch: epochForTests, Clock: quantity.StoreTime(c.now)}
	_, admitted := inUnits(&c.pool, c.now, guard, terms, units)
	*c.pooled += admitted
}

// burst returns the burst of all regions together.
func (c *cluster) burst() (sum quantity.Units) {
	for _, units := range c.bucket.Bursts {
		sum += units
	}
	return sum
}

// judged has the oracle judge the cluster from outside. The oracle has no rule for the counter
// where clocks are apart; see estimate for that.
func (c *cluster) judged() {
	c.limit = oracle.Limit{Limit: int64(c.bucket.Limit), Burst: int64(c.burst()),
		Window:    time.Duration(c.bucket.Window) * time.Microsecond,
		Algorithm: string(c.bucket.Kind)}
	c.judge = oracle.New(c.limit)
}

// tell tells the judge what a region answered. The time is that of the region's store or, if clocks
// are apart and the promise is about real time, that of one real clock.
func (r *testRegion) tell(admitted, denied quantity.Units, d algorithms.Decided) {
	c := r.cluster
	if c.judge == nil {
		return
	}
	a := oracle.Answer{Bucket: "b", Region: r.name, Node: "n1", Cell: int64(d.Buckets[0].Cell),
		At: int64(d.Now), Share: int64(d.Buckets[0].Share)}
	if c.apart {
		a.At = int64(c.now)
		a.Cell = c.limit.CellOf(int64(c.now))
	}
	a.Sent, a.Seen = time.UnixMicro(a.At), time.UnixMicro(a.At)
	if a.Outcome, a.Cost = oracle.Admitted, int64(admitted); admitted > 0 {
		c.record(a)
	}
	if a.Outcome, a.Cost = oracle.Denied, int64(denied); denied > 0 {
		c.record(a)
	}
}

func (c *cluster) record(a oracle.Answer) {
	c.told++
	a.Sequence = c.told
	c.judge.Record(a)
}
