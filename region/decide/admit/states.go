package admit

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/trade/rights"
)

// LimitState is what one limit said of a request.
type LimitState struct {
	Limit      string
	Alias      string           // policy.Limit.Alias
	Metadata   *policy.Metadata // policy.Limit.Metadata
	Algorithm  algorithms.Kind
	LimitUnits quantity.Units
	Window     time.Duration
	Unit       string         // policy.Limit.Unit
	Period     policy.Period  // of a limit that counts by the calendar; else empty
	Cost       quantity.Units // of the request
	Shadow     bool           // it never denies
	// Alternative says that it denies only together with all others of which this is true.
	Alternative bool
	// Admits says that the limit had room for the request.
	Admits bool
	// Counted says that the store or the node counted, and that the following is known.
	Counted bool
	// At is as Decision.At. Limits in different shards of a store have times of their own.
	At quantity.StoreTime
	// Earlier says that an earlier attempt with the request's id was charged to this limit, At that
	// time, and this attempt was not.
	Earlier     bool
	Remaining   quantity.Units
	Class       string         // as Decision.Class
	Kept        quantity.Units // as Decision.Kept
	Owed        quantity.Units // as Decision.Owed
	ResetAfter  time.Duration  // as Decision.ResetAfter
	RetryAfter  time.Duration  // as Decision.RetryAfter; 0 if it admits
	Ends        time.Duration  // until the window of a fixed_window ends, if it is Counted
	Share       quantity.Units
	Entitlement quantity.Units
	Degraded    bool
}

// wantsStates reports whether a decision on the request lists its limits: if there are several, or if
// the request has lists, or others that are not among them.
func (w *way) wantsStates() bool { return len(w.Applied) > 1 || w.lists != nil || w.others }

// state returns what is known of a limit without a count.
func (w *way) state(engine *rights.Engine, i int) LimitState {
	a := w.Applied[i]
	return LimitState{Limit: a.Limit.Name, Alias: a.Limit.Alias, Metadata: a.Limit.Metadata,
		Algorithm: a.Limit.Algorithm, LimitUnits: a.Limit.Limit, Window: a.Limit.Window, Period: a.Limit.Period,
		Unit: a.Limit.Unit, Class: w.class(i), Cost: w.CostOf(i), Shadow: a.Limit.Shadow, Alternative: a.Limit.Alternative,
		Entitlement: a.Entitlement(),
		Degraded:    engine.Degraded(a.Bucket), Admits: true}
}

// states returns what the store said of each limit of a request. An answer from memory knows the
// limits that deny alone. seed is that of retryAfter.
func (w *way) states(engine *rights.Engine, a queue.Answer, seed uint64) []LimitState {
	all := make([]LimitState, len(w.Applied))
	for i, v := range a.Own().Verdicts {
		s, bucket := w.state(engine, i), a.Decided.Buckets[i]
		if !a.FromMemory || a.At(i) != 0 {
			s.Admits, s.Counted = v.Retry == 0, true
			s.Remaining, s.Kept = w.left(i, a)
			s.At, s.Earlier = a.At(i), a.Earlier != nil && a.Earlier[i]
			s.ResetAfter, s.Share = quantity.Duration(bucket.Reset), max(bucket.Share, 0)
			s.Window = lengthOf(w.Applied[i], bucket.Cell)
			if s.Algorithm == algorithms.FixedWindow {
				s.Ends = quantity.Duration(w.Applied[i].Target.Terms.Opens(bucket.Cell + 1).Sub(a.At(i)))
			}
			s.RetryAfter = w.denies(i, a).retryAfter(engine, seed, false)
		}
		all[i] = s
	}
	return all
}

// uncounted returns the states of a request that the store did not decide: of the limit that
// decided what the node counted.
func (w *way) uncounted(engine *rights.Engine, d Decision) []LimitState {
	all := make([]LimitState, len(w.Applied))
	for i := range all {
		all[i] = w.state(engine, i)
		if all[i].Limit != d.Limit {
			continue
		}
		all[i].Admits = d.Allowed
		if d.Reason == StoreFailureLocal || d.FromMemory {
			all[i].Counted, all[i].Remaining, all[i].Kept = true, d.Remaining, d.Kept
			all[i].ResetAfter, all[i].RetryAfter = d.ResetAfter, d.RetryAfter
		}
	}
	return all
}

// lengthOf returns how long the window is that a cell of a limit is in.
func lengthOf(a *rules.Applied, cell quantity.Cell) time.Duration {
	if c := a.Target.Terms.Calendar; c != nil && cell > 0 {
		return quantity.Duration(c.Opens(cell + 1).Sub(c.Opens(cell)))
	}
	return a.Limit.Window
}
