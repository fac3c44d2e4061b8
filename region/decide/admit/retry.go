package admit

import (
	"cmp"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/trade/rights"
)

// unknownWithin is the longest time that a denial tells where nobody knows how long it lasts: the
// store may be back in a second, and what it lost may be known.
const unknownWithin = time.Minute

// denies is one limit's denial of a request: a bucket's state and the verdict, at a time of the
// store.
type denies struct {
	*rules.Applied
	cost    quantity.Units
	part    quantity.PPM // that its class may use
	state   algorithms.State
	verdict algorithms.Verdict
	at      quantity.StoreTime
}

// never reports whether the cost is above what the class may use of all that the limit has.
func (d denies) never() bool { return d.cost > algorithms.Portion(d.Most(), d.part) }

// reason returns why the limit denies the request. For a class of less than all no region lends.
func (d denies) reason() Reason {
	switch {
	case d.never():
		return Never
	case d.part < algorithms.Whole && d.verdict.Retry < 0:
		return ExceedsRegionCapacity
	}
	return reasonOf(d.Applied, d.cost, d.state, d.verdict, d.at)
}

// retryAfter returns when a request may come again that a limit denies: when this region's rights
// suffice for it, after all who were told so before, or when units of other regions may be here, if
// that is sooner. Negative: neither is known. It is the only rule for what callers are told, by
// whatever field or header. With take, the caller is told, and the next one of the units after.
// seed tells requests apart that were decided at the same time.
func (d denies) retryAfter(engine *rights.Engine, seed uint64, take bool) time.Duration {
	s, own := d.state, quantity.Duration(d.verdict.Retry)
	switch {
	case own == 0:
		return 0
	case d.never():
		return -1
	case d.AwayFromHome(): // it may borrow anew in the next cell
		own = max(quantity.Duration(d.Target.Terms.Opens(s.Cell+1).Sub(d.at)), time.Millisecond)
	case own < 0 && (d.cost > d.Reach() || d.part < algorithms.Whole):
		return -1
	case own < 0:
		own = d.untilOthersLend()
	case s.Shut > d.at:
		return min(own, unknownWithin)
	}
	var lent exchange.Relief
	bucket := d.Limit.Algorithm.Bucket()
	// Else the others hold nothing, or what they lend for the cost is too little for a part of all.
	if d.part >= algorithms.Whole && (bucket || s.Share < d.Most()) {
		lent = engine.Relief(d.Bucket, s.Cell, s.Share, d.cost-s.Free+debtOf(d.Applied, s))
	}
	if lent.Units > 0 && (!bucket || d.verdict.Retry < 0) { // they come all at once
		if after := spread(quantity.Duration(lent.After), uint64(d.at)+seed); after < d.turn(own, exchange.Relief{}, false) {
			return after
		}
		lent = exchange.Relief{}
	}
	return d.turn(own, lent, take)
}

// untilOthersLend returns after how long a cost above this region's own part may be had, if nothing
// is known of what others have: in the next cell, or when a bucket of all regions together would
// have it.
func (d denies) untilOthersLend() time.Duration {
	t := d.Target.Terms
	if d.Limit.Algorithm.Bucket() {
		return time.Duration(float64(d.cost) / float64(d.Limit.Limit) * float64(d.Limit.Window))
	}
	return max(quantity.Duration(t.Opens(d.state.Cell+1).Sub(d.at)), time.Millisecond)
}

// turn returns when it is a request's turn, which would fit alone after a time. The units of a
// fixed window come free all at once. Those of a bucket come at this region's rate and, once others
// have lent theirs, at up to the limit's; turns are given within a window. A sliding window's have
// all come free when it is whole.
func (d denies) turn(alone time.Duration, lent exchange.Relief, take bool) time.Duration {
	if d.Limit.Algorithm == algorithms.FixedWindow {
		return alone
	}
	c := held.Coming{Now: d.at, Alone: alone, Cost: d.cost, Window: d.Limit.Window, Within: d.Limit.Window,
		Rate: cmp.Or(max(d.state.Share, 0), d.state.Entitlement)}
	if !d.Limit.Algorithm.Bucket() {
		c.Within = quantity.Duration(d.state.Reset)
	}
	c.Lower = d.part < algorithms.Whole
	c.After, c.AtOnce = quantity.Duration(lent.After), lent.Burst
	if lent.Unheard {
		c.Within = min(c.Within, unknownWithin)
	}
	c.More = min(lent.Units-lent.Burst, max(d.Limit.Limit-c.Rate, 0))
	return d.Held.Turn(c, take)
}

// spread makes a time longer by up to a quarter, so that callers who were denied at the same time
// do not come again at the same time.
func spread(d time.Duration, seed uint64) time.Duration {
	seed *= 0x9e3779b97f4a7c15
	return d + time.Duration(float64(d)/4*float64(seed>>40)/(1<<24))
}

// Wait returns when a denied request may come again, if that is known, and of an admitted one when
// the limit is whole.
func (s LimitState) Wait() time.Duration {
	if !s.Admits && s.RetryAfter > 0 {
		return s.RetryAfter
	}
	return max(s.ResetAfter, 0)
}
