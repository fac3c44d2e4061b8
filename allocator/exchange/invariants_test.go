//go:build !race

package exchange

import (
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// checkAdmission checks the invariants that a decision alone can break: the ceiling of a label, a
// region's own share and, where clocks are apart, the counter's estimate.
func (r *testRegion) checkAdmission(d algorithms.Decided) {
	c, s := r.cluster, d.Buckets[0]
	switch {
	case c.bucket.Kind == algorithms.FixedWindow && c.admit[int64(s.Cell)] > c.bucket.Limit:
		c.fault("cell %d admitted %d of %d", s.Cell, c.admit[int64(s.Cell)], c.bucket.Limit)
	case c.bucket.Kind == algorithms.FixedWindow && s.Used > s.Share:
		c.fault("%s used %d of a share of %d", r.name, s.Used, s.Share)
	case c.bucket.Kind == algorithms.SlidingWindowCounter &&
		c.estimate() > c.bucket.Limit*quantity.Units(c.bucket.Window):
		c.fault("the estimates add up to %d units in microseconds of %d", c.estimate(),
			c.bucket.Limit*quantity.Units(c.bucket.Window))
	}
}

// estimate returns the sum of the regions' sliding counter estimates at this moment, each by its
// own clock, in units times microseconds. Where clocks are apart this sum must stay within the
// limit. It rises only when something is admitted.
func (c *cluster) estimate() (sum quantity.Units) {
	w := c.bucket.Window
	for _, name := range c.names {
		r := c.regions[name]
		cell, elapsed := int64(r.time())/w, int64(r.time())%w
		sum += r.counted[cell]*quantity.Units(w) + r.counted[cell-1]*quantity.Units(w-elapsed)
	}
	return sum
}

// fault keeps the first violation.
func (c *cluster) fault(format string, args ...any) {
	if c.wrong == nil {
		c.wrong = fmt.Errorf(format, args...)
	}
}

// invariants checks what must hold after every event: conservation over all regions, and what
// decisions may have broken. It skips the stores whose rows did not move.
func (c *cluster) invariants() error {
	if c.moved && c.wrong == nil {
		c.moved = false
		c.wrong = c.conserved()
	}
	return c.wrong
}

// ledger is the rows of one region, by cell and peer.
type ledger map[int64]map[string]algorithms.Row

// conserved checks that shares, and tokens at hand, add up to no more than there is, that nobody
// lends more than it may, and that nobody counts rights that were not given.
func (c *cluster) conserved() error {
	shares := map[int64]quantity.Units{} // by cell, over the regions that still have rows of it
	ledgers := map[string]ledger{}
	var free quantity.Units
	for _, name := range c.names {
		r := c.regions[name]
		i := r.store.Inspect(quantity.StoreTime(r.time()), algorithms.Inspect{Fence: r.guard(),
			Target: algorithms.Target{Key: "b", Terms: r.terms()}})
		shares[int64(i.Cell)] += i.Share
		shares[int64(i.Cell+1)] += i.NextShare
		free += i.Free
		ledgers[name] = ledger{}
		for _, row := range i.Rows {
			if ledgers[name][int64(row.Cell)] == nil {
				ledgers[name][int64(row.Cell)] = map[string]algorithms.Row{}
			}
			ledgers[name][int64(row.Cell)][row.Peer] = row.Row
		}
		if err := r.withinLendingLimit(ledgers[name]); err != nil {
			return err
		}
	}
	for cell, sum := range shares {
		if sum > c.bucket.Limit {
			return fmt.Errorf("cell %d: shares add up to %d of %d", cell, sum, c.bucket.Limit)
		}
	}
	if c.bucket.Kind == algorithms.TokenBucket && free > c.burst() {
		return fmt.Errorf("regions have %d tokens of %d", free, c.burst())
	}
	return c.matched(ledgers)
}

// withinLendingLimit checks that a region lends its own rights only, and not more of them than it
// may.
func (r *testRegion) withinLendingLimit(l ledger) error {
	for cell, peers := range l {
		var units, burst quantity.Units
		for _, row := range peers {
			units += row.Lent - row.Regained
			burst += row.BurstLent
		}
		if most := allocator.Part(r.bucket.Entitlements[r.name], r.bucket.Lending); units > most {
			return fmt.Errorf("%s lent %d of cell %d, above its lending limit of %d", r.name, units,
				cell, most)
		}
		if most := allocator.Part(r.bucket.Bursts[r.name], r.bucket.Lending); burst > most {
			return fmt.Errorf("%s lent a burst of %d in cell %d, above its lending limit of %d",
				r.name, burst, cell, most)
		}
	}
	return nil
}

// matched checks that nobody counts rights that were not given.
func (c *cluster) matched(ledgers map[string]ledger) error {
	for name, cells := range ledgers {
		for cell, peers := range cells {
			for peer, row := range peers {
				theirs, known := ledgers[peer][cell]
				if c.clocksApart() && !known || cell <= c.regions[peer].closed ||
					cell <= c.regions[name].closed {
					continue // over, or not begun, there; or lost, and closed
				}
				given := theirs[name]
				if row.Borrowed > given.Lent || row.Regained > given.Returned ||
					row.BurstBorrowed > given.BurstLent {
					return fmt.Errorf("cell %d: %s counts %+v of what %s has as %+v", cell, name,
						row, peer, given)
				}
			}
		}
	}
	return nil
}

// clocksApart reports whether a region may be in another cell than others.
func (c *cluster) clocksApart() bool { return c.apart || c.bucket.Kind == algorithms.FixedWindow }

// durable checks that a reply announces nothing that the journal does not have.
func (r *testRegion) durable(reply Reply, peer string) {
	for _, g := range reply.Grants {
		row := r.journal[fmt.Sprint(peer, g.Cell)]
		if g.Lent > row.Lent || g.Returned > row.Returned || g.Burst > row.Burst {
			r.t.Fatalf("%s announced %+v to %s, but its journal has %+v", r.name, g, peer, row)
		}
	}
}
