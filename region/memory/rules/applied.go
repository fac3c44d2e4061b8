package rules

import (
	"sync/atomic"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tally"
)

// Applied is one limit as it applies to one key: a bucket, and all that a node needs to decide
// requests on it. Only Held, Tally and Charges change.
type Applied struct {
	// What finding the bucket looks at stands together, so that it comes to the processor at once.
	Hash   uint64      // of the bucket's id: see Hash
	id     string      // Bucket.ID
	recent atomic.Bool // found since a place for another bucket was last looked for

	Limit   *policy.Limit
	Bucket  *exchange.Bucket
	Target  algorithms.LimitTarget
	Reserve *Reserve // nil: the limit keeps none
	// EnvoyBurst is the most tokens that the region's Envoys hold of a limit with assign.
	EnvoyBurst quantity.Units
	reach      quantity.Units
	Held       held.Memory
	Tally      tally.Count // of requests, for operators
	Charges    Charges
}

// Charges remembers what a bucket is charged whose costs are known only afterwards. The zero value has
// seen none. Safe for concurrent use.
type Charges struct {
	usual atomic.Int64 // units, times usualScale
	asked atomic.Bool  // it was asked about without being charged, as before a use
}

const (
	usualScale  = 1 << 8
	usualWeight = 8 // the latest charge is a usualWeight-th of the mean
)

// Note takes in a charge.
func (c *Charges) Note(cost quantity.Units) {
	was := c.usual.Load()
	now := int64(cost) * usualScale
	if was > 0 {
		now = was + (now-was)/usualWeight
	}
	c.usual.CompareAndSwap(was, now) // of charges at one time one may be left out
}

// Usual returns what a charge costs about, at least 1.
func (c *Charges) Usual() quantity.Units {
	return max(quantity.Units(c.usual.Load()/usualScale), 1)
}

// Ask notes that the bucket was asked about without being charged.
func (c *Charges) Ask() {
	if !c.asked.Load() {
		c.asked.Store(true)
	}
}

// Asked reports whether it ever was.
func (c *Charges) Asked() bool { return c.asked.Load() }

// Store names the shard of the region's store that has the bucket, and so the clock of its cells.
func (a *Applied) Store() string { return string(store.ShardOf(a.Target.Key)) }

// Entitlement returns this region's entitlement F. The region's store holds all of it but the
// reserve.
func (a *Applied) Entitlement() quantity.Units {
	f := a.Target.Terms.Entitlement
	if a.Reserve != nil {
		f += a.Reserve.Units
	}
	return f
}

// Capacity returns the largest cost that the region's store can admit on its own rights.
func (a *Applied) Capacity() quantity.Units {
	if a.Limit.Algorithm.Bucket() {
		return a.Target.Terms.Burst
	}
	return a.Target.Terms.Entitlement
}

// Reach returns the largest cost that the region can admit with what others may lend it. Tokens are lent
// for a large cost only while its request waits (on_exhausted: borrow).
func (a *Applied) Reach() quantity.Units { return a.reach }

// AwayFromHome reports whether the limit is in home mode and another region is the bucket's home: this
// one is entitled to nothing, and borrows each unit.
func (a *Applied) AwayFromHome() bool { return a.Bucket.Home && a.Entitlement() == 0 }

// Most returns the largest cost that the limit can ever admit: what one store would hold if it had
// all rights of all regions.
func (a *Applied) Most() quantity.Units {
	switch {
	case a.Reserve != nil:
		return a.Reserve.stored
	case a.Limit.Algorithm.Bucket():
		_, burst := a.Limit.Shared()
		return burst
	}
	return a.Limit.Limit
}
