package exchange

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// invariants checks after an event what must hold after every event: conservation over all regions, and the ceiling
// of every label.
func (c *cluster) invariants() error {
	for cell, units := range c.admit {
		if units > c.bucket.Limit {
			return fmt.Errorf("cell %d admitted %d of %d", cell, units, c.bucket.Limit)
		}
	}
	shares := map[int64]int64{} // by cell, over the regions that still have rows of it
	rows := map[string]map[int64]map[string]algorithms.Row{}
	for _, name := range c.names {
		r := c.regions[name]
		i := r.store.Inspect(r.time(), algorithms.Inspect{Guard: r.guard(), Key: "b", Terms: r.terms()})
		shares[i.Cell] += i.Share
		shares[i.Cell+1] += i.NextShare
		if i.Used > i.Share {
			return fmt.Errorf("%s used %d of a share of %d", name, i.Used, i.Share)
		}
		rows[name] = map[int64]map[string]algorithms.Row{}
		out := map[int64]int64{}
		for _, row := range i.Rows {
			if rows[name][row.Cell] == nil {
				rows[name][row.Cell] = map[string]algorithms.Row{}
			}
			rows[name][row.Cell][row.Peer] = row.Row
			out[row.Cell] += row.Lent - row.Regained
		}
		for cell, units := range out {
			if limit := allocator.Part(c.bucket.Entitlements[name], c.bucket.Lending); units > limit {
				return fmt.Errorf("%s lent %d of cell %d, above its lending limit of %d", name, units, cell, limit)
			}
		}
	}
	for cell, sum := range shares {
		if sum > c.bucket.Limit {
			return fmt.Errorf("cell %d: shares add up to %d of %d", cell, sum, c.bucket.Limit)
		}
	}
	return c.matched(rows)
}

// matched checks that nobody counts what was not given.
func (c *cluster) matched(rows map[string]map[int64]map[string]algorithms.Row) error {
	for name, cells := range rows {
		for cell, peers := range cells {
			for peer, row := range peers {
				theirs, known := rows[peer][cell]
				if !known || cell <= c.regions[peer].closed || cell <= c.regions[name].closed {
					continue // over, or not begun, there; or lost, and closed
				}
				if row.Borrowed > theirs[name].Lent || row.Regained > theirs[name].Returned {
					return fmt.Errorf("cell %d: %s counts %+v of what %s has as %+v", cell, name, row, peer, theirs[name])
				}
			}
		}
	}
	return nil
}

// durable checks that a reply announces nothing that the journal does not have.
func (r *testRegion) durable(reply Reply, peer string) {
	for _, g := range reply.Grants {
		row := r.journal[fmt.Sprint(peer, g.Cell)]
		if g.Lent > row.Lent || g.Returned > row.Returned || g.Burst > row.Burst {
			r.t.Fatalf("%s announced %+v to %s, but its journal has %+v", r.name, g, peer, row)
		}
	}
}

// hostility makes a world's life hard, by the seed.
func (c *cluster) hostility() {
	c.net.loss, c.net.duplicate, c.net.late = c.rand.IntN(30), c.rand.IntN(30), c.rand.IntN(20)
	c.net.delay = []int64{5000, 40_000, 40_000, 150_000, 350_000}[c.rand.IntN(5)]
	crash := []int{0, 5, 30}[c.rand.IntN(3)]
	for _, name := range c.names {
		r := c.regions[name]
		r.crash = crash
		r.offset = c.rand.Int64N(1_600_000) - 800_000
		r.load()
		c.disturb(r)
	}
}

// disturb changes a region's demand, clock, links and what is gossiped about it, again and again.
func (c *cluster) disturb(r *testRegion) {
	if c.rand.IntN(20) == 0 {
		r.lose()
	}
	switch c.rand.IntN(6) {
	case 0:
		r.rate = 0
	case 1, 2:
		r.rate = c.rand.Int64N(3 * c.bucket.Limit)
	case 3:
		r.offset += c.rand.Int64N(600_000) - 300_000
	case 4:
		c.isolate(r.name, c.rand.IntN(4) == 0)
	case 5:
		lie := Hint{Region: r.name, Bucket: "b", Cell: r.time()/c.bucket.Cell + c.rand.Int64N(3) - 1,
			Used: c.rand.Int64() - c.rand.Int64(), Rate: c.rand.Int64(), Share: -c.rand.Int64(), Spare: c.rand.Int64()}
		for _, peer := range r.peers() {
			c.regions[peer].step(Heard{Hint: lie})
		}
	}
	c.after(c.rand.Int64N(600_000), func() { c.disturb(r) })
}

// TestRightsNeverExceedTheLimit: three regions, a network that loses, repeats, delays beyond a cell and reorders,
// cuts, clocks apart and stepping, lies by gossip, stores that lose everything, and a crash at any effect; after every event
// the invariants.
func TestRightsNeverExceedTheLimit(t *testing.T) {
	const seeds = 150
	var sum Stats
	crashes, losses := 0, 0
	for seed := range uint64(seeds) {
		split := [][]int64{{400, 400, 200}, {3, 2, 1}, {40, 40, 20}}[seed%3]
		c := newCluster(t, seed, allocator.Second, split...)
		c.hostility()
		end := c.now + 15*allocator.Second
		for len(c.queue) > 0 && c.now < end {
			c.run(c.queue[0].at)
			if err := c.invariants(); err != nil {
				t.Fatalf("seed %d, %.3f s: %v", seed, float64(c.now%(1000*allocator.Second))/allocator.Second, err)
			}
		}
		s := c.stats()
		sum.UnitsBorrowed += s.UnitsBorrowed
		sum.UnitsReturned += s.UnitsReturned
		for _, r := range c.regions {
			crashes += r.born - 1
			losses += r.losses
		}
	}
	if sum.UnitsBorrowed < 1000*seeds/10 || sum.UnitsReturned < seeds || crashes < seeds || losses < seeds {
		t.Fatalf("%d units borrowed, %d returned, %d crashes, %d losses: the test was too easy", sum.UnitsBorrowed, sum.UnitsReturned, crashes, losses)
	}
	t.Logf("%d seeds: %d units borrowed, %d returned, %d crashes, %d losses", seeds, sum.UnitsBorrowed, sum.UnitsReturned, crashes, losses)
}

// TestACrashAtEachEffect kills the borrower's node, and the lender's, before and after each of its effects in turn: the
// debit, the record, the reply, the credit.
func TestACrashAtEachEffect(t *testing.T) {
	const effects = 60
	for _, victim := range []string{"us", "eu"} {
		reached := 0
		for at := 1; at <= effects; at++ {
			c := newCluster(t, 1, allocator.Second, 40, 40, 20)
			c.demand(Options{}, 90, 6, 2)
			r := c.regions[victim]
			r.dieAt = at
			for end := c.now + 4*allocator.Second; c.now < end; {
				c.run(c.queue[0].at)
				if err := c.invariants(); err != nil {
					t.Fatalf("%s died at effect %d: %v", victim, at, err)
				}
			}
			if r.effects >= at {
				reached++
			}
		}
		if reached < effects/2 {
			t.Errorf("%s has so few effects that it died only %d times", victim, reached)
		}
	}
}
