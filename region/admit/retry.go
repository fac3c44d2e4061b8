package admit

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/rules"
)

// unknownWithin is the longest time that a denial tells where nobody knows how long it lasts: the
// store may be back in a second, and what it lost may be known.
const unknownWithin = time.Minute

// retryAfter returns when a request may come again that a limit denies, as a bucket's state and the
// verdict say at a time of the store: when this region's rights suffice, or when units of other
// regions may be here, if that is sooner. Negative: neither is known. It is the only rule for what
// callers are told, by whatever field or header. seed tells requests apart that were decided at the
// same time.
func (l *Limiter) retryAfter(a *rules.Applied, cost quantity.Units, s algorithms.State,
	v algorithms.Verdict, at quantity.StoreTime, seed uint64) time.Duration {
	own := microseconds(v.Retry)
	switch {
	case v.Retry == 0:
		return 0
	case cost > a.Most():
		return -1
	case a.AwayFromHome(): // it may borrow anew in the next cell
		own = max(microseconds(a.Target.Terms.Opens(s.Cell+1).Sub(at)), time.Millisecond)
	case v.Retry < 0:
		return -1
	case s.Shut > at:
		return min(own, unknownWithin)
	case !a.Limit.Algorithm.Bucket() && s.Share >= a.Most(): // the others hold nothing
		return own
	}
	if after, comes := l.rights.Relief(a.Bucket, s.Cell, s.Share, cost-s.Free); comes {
		return min(own, spread(after, uint64(at)+seed))
	}
	return own
}

// spread makes a time longer by up to a quarter, so that callers who were denied at the same time do
// not come again at the same time.
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
