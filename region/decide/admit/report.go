package admit

import (
	"context"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
)

// A use whose cost is known only afterwards is asked about before (Request.Question) and charged when it
// ends (Report). Limits that say charge: always are charged the whole cost then, whatever is left. What did
// not fit is owed, and they deny until it is covered.

// asked notes on the limits that a request asks about that they are.
func (w *way) asked() {
	for i, a := range w.Applied {
		if w.CostOf(i) == 0 {
			a.Charges.Ask()
		}
	}
}

func always(a *rules.Applied) bool   { return a.Limit.Charge == policy.ChargeAlways }
func ordinary(a *rules.Applied) bool { return !always(a) }

// chargesAlways reports whether a request charges one of its limits whatever is left.
func (w *way) chargesAlways(i int) bool { return always(w.Applied[i]) && w.CostOf(i) > 0 }

// reports reports whether a request charges any of its limits whatever is left.
func (w *way) reports() bool {
	for i := range w.Applied {
		if w.chargesAlways(i) {
			return true
		}
	}
	return false
}

// reports reports whether a request is charged as Report does.
func (l *Limiter) reports(q Request) bool {
	w := l.prepare(q, true, nil)
	return w.reports()
}

// Report charges the cost of a use that is over. Limits that say charge: always are charged whatever
// is left; the decision is a denial as long as one of them owes, with the part of the cost that did not
// fit (Decision.Owed). They are charged, too, if the caller goes or the store cannot be asked: then the
// node keeps the charge until the store can be charged with it. An answer of the store that was lost
// may count twice then. The other limits are charged if the cost fits all of them, as Check does, and
// so are lists of which the cost is 0 asked about. The error is an *invalid.Field, also if no limit says charge: always;
// ErrClosed; or, of the other limits, that of Check: then what is charged always is charged already, and
// only a report with an ID can be sent again.
func (l *Limiter) Report(ctx context.Context, q Request) (Decision, error) {
	if err := q.Validate(); err != nil {
		return Decision{}, err
	}
	w := l.prepare(q, true, nil)
	if !w.reports() {
		return Decision{}, invalid.Fieldf("descriptors",
			"meet no limit that says charge: always; ask Check, which charges what fits")
	}
	if w.needsNoStore(q.Domain) { // denied, or not served here
		return l.check(ctx, q, true)
	}
	if l.queue.Closed() {
		return Decision{}, ErrClosed
	}
	r := report{way: &w, states: make([]LimitState, len(w.Applied))}
	l.chargeAlways(ctx, q, &r)
	if err := l.chargeOthers(ctx, q, &r); err != nil {
		return Decision{}, err
	}
	d := r.decision
	d.Epoch = w.Rules.Newest
	if w.lists != nil {
		d.Met = w.lists.met
	}
	if w.wantsStates() {
		d.Limits = r.states
	}
	return l.sign(d), nil
}

// report is a request of Report on its way.
type report struct {
	*way
	states   []LimitState // by place of the limit
	decision Decision     // of the limit that says most so far
	decided  bool
}

// take takes in what one or more limits say. Of denials that speaks which lasts longest, else the limit
// with least left.
func (r *report) take(d Decision) {
	was := r.decision
	owed, repeated := max(was.Owed, d.Owed), d.Repeated && (was.Repeated || !r.decided)
	worse := !r.decided
	switch {
	case was.Allowed != d.Allowed:
		worse = worse || was.Allowed
	case !d.Allowed:
		worse = worse || was.RetryAfter >= 0 && (d.RetryAfter < 0 || d.RetryAfter > was.RetryAfter)
	default:
		worse = worse || d.Remaining < was.Remaining
	}
	if worse {
		r.decision = d
	}
	r.decided, r.decision.Owed, r.decision.Repeated = true, owed, repeated
}

// chargeAlways charges the limits that are charged always, each by itself.
func (l *Limiter) chargeAlways(ctx context.Context, q Request, r *report) {
	var asks []queue.Ask
	var of []int
	for i, a := range r.Applied {
		if !r.chargesAlways(i) {
			continue
		}
		own := r.Ask
		own.Applied, own.Cost, own.Costs = []*rules.Applied{a}, r.CostOf(i), nil
		own.Commit, own.Charge, own.Once, own.Portions = true, true, "", nil
		if q.ID != "" {
			own.Once = onceKey(q.ID, own.Cost, own.Applied, "charge")
		}
		asks, of = append(asks, own), append(of, i)
	}
	said, errs := l.queue.DecideAll(context.WithoutCancel(ctx), asks)
	for n, i := range of {
		if errs[n] == nil && said[n].Lost() != nil {
			said[n], errs[n] = l.chargeRestored(ctx, asks[n], said[n])
		}
		one := &way{Ask: asks[n]}
		a, cost := one.Applied[0], one.Cost
		a.Charges.Note(cost)
		var d Decision
		if errs[n] == nil && said[n].Err == nil {
			d = l.judge(one, said[n])
			r.states[i] = one.states(l.rights, said[n], 0)[0]
			r.states[i].Earlier = d.Repeated
			l.metrics.sentAgain(said[n].Decided)
		} else {
			d = l.keep(a, cost)
			r.states[i] = one.uncounted(l.rights, d)[0]
		}
		r.states[i].Owed = d.Owed
		l.accounts.charged(a, cost, d)
		r.take(d)
	}
}

// chargeRestored charges a bucket that the store had lost, if it is restored while the caller waits.
func (l *Limiter) chargeRestored(ctx context.Context, own queue.Ask, lost queue.Answer) (queue.Answer, error) {
	f := Flow{limiter: l, way: way{Ask: own}, said: lost}
	if f.waitRestored(); f.next == Waits {
		f.pause(ctx)
	}
	if f.next == Asks {
		return l.queue.Decide(context.WithoutCancel(ctx), own)
	}
	return lost, nil
}

// keep keeps a charge until the store can be charged with it.
func (l *Limiter) keep(a *rules.Applied, cost quantity.Units) Decision {
	s, kept := l.local.Keep(local.Charge{Applied: a, Cost: cost})
	if !kept {
		l.metrics.lostCharges.counter(a.Limit.Name, "").Add(float64(cost))
	}
	d := Decision{Allowed: s.Admitted, Reason: StoreFailureLocal, Remaining: s.Left, ResetAfter: s.Reset,
		Owed: s.Owed}
	if !s.Admitted {
		d.RetryAfter = min(s.Reset, unknownWithin)
	}
	return l.describe(d, a)
}

// chargeOthers charges what is not charged always.
func (l *Limiter) chargeOthers(ctx context.Context, q Request, r *report) error {
	q.others = true
	f, err := l.Begin(q, true)
	if err != nil || len(f.way.Applied) == 0 {
		return err
	}
	f.answerWithin(ctx)
	f.run(ctx)
	d, err := f.decision()
	if err != nil {
		return err
	}
	l.accounts.count(&f.way, d)
	r.take(d)
	for i, n := 0, 0; i < len(r.Applied) && n < len(d.Limits); i++ {
		if !r.chargesAlways(i) {
			r.states[i] = d.Limits[n]
			n++
		}
	}
	return nil
}

// leaveCharged leaves out what is charged always.
func (w *way) leaveCharged() {
	w.others = true
	if w.lists == nil {
		w.Applied = slices.DeleteFunc(w.Applied, always)
		return
	}
	costs := make([]quantity.Units, len(w.Applied))
	for i := range costs {
		costs[i] = w.CostOf(i)
	}
	w.costing(w.leave(costs, w.chargesAlways))
}

// owes returns what did not fit of a charge of one of its limits.
func (w *way) owes(i int, a queue.Answer) quantity.Units {
	if !w.Charge {
		return 0
	}
	return a.Own().Verdicts[i].Owed
}

// debtOf returns how many units a bucket of a limit that is charged always owes, by its state.
func debtOf(a *rules.Applied, s algorithms.State) quantity.Units {
	has := s.Share
	if a.Limit.Algorithm.Bucket() {
		has = a.Target.Terms.Burst
	}
	if !always(a) {
		return 0
	}
	return max(s.Used-max(has, 0), 0)
}
