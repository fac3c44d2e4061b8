package admit

import (
	"math"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
)

// sign sets what every decision of this node carries: node, region and sequence number. It also
// counts the decision.
func (l *Limiter) sign(d Decision) Decision {
	d.Node, d.Region = l.config.Node, l.config.Region
	d.Sequence = l.sequence.Add(1)
	l.metrics.decided(d)
	return d
}

// describe fills in the decision's fields about the limit that decided.
func (l *Limiter) describe(d Decision, a *rules.Applied) Decision {
	d.Limit, d.Algorithm, d.LimitUnits, d.Window = a.Limit.Name, a.Limit.Algorithm, a.Limit.Limit,
		lengthOf(a, d.Cell)
	d.Unit, d.Entitlement = a.Limit.Unit, a.Entitlement()
	d.Degraded = l.rights.Degraded(a.Bucket)
	return d
}

// judge turns the store's answer into a decision. The limit that decides is the one with the
// greatest weight. A shadow limit decides only if no other limit applies, and so does an
// alternative limit that did not deny although it had no room.
func (l *Limiter) judge(w *way, a queue.Answer) Decision {
	answer, all := a.Own(), w.Applied
	decider, best := 0, int64(math.MinInt64)
	var retry time.Duration // of the decider
	admitted := answer.Admitted && (w.owes(0, a) == 0 || all[0].Limit.Shadow)
	seed, takes := l.sequence.Load(), w.Commit && !admitted && !w.Charge
	var shadowed []string
	var delay int64
	spared := !w.allFull(&a)
	harmless := func(i int) bool {
		return all[i].Limit.Shadow ||
			spared && all[i].Limit.Alternative && answer.Verdicts[i].Retry != 0
	}
	for i, v := range answer.Verdicts {
		shadow := harmless(i)
		if !shadow {
			delay = max(delay, v.Delay)
		}
		if all[i].Limit.Shadow && v.Retry != 0 {
			shadowed = append(shadowed, all[i].Limit.Name)
		}
		after := w.denies(i, a).retryAfter(l.rights, seed, takes && len(all) == 1 && w.CostOf(i) > 0)
		remaining, _ := w.left(i, a)
		weighs := weight(admitted, remaining, after, w.denies(i, a).never())
		first := i == 0 || harmless(decider) && !shadow
		if first || shadow == harmless(decider) && weighs > best {
			decider, best, retry = i, weighs, after
		}
	}
	state, verdict := a.Decided.Buckets[decider], answer.Verdicts[decider]
	remaining, kept := w.left(decider, a)
	d := l.describe(Decision{Allowed: admitted, Reason: WithinLimit,
		Remaining: remaining,
		Class:     w.class(decider), Kept: kept,
		Owed:       w.owes(decider, a),
		ResetAfter: quantity.Duration(state.Reset),
		Cell:       state.Cell, At: a.At(decider),
		Share: max(state.Share, 0), Shadowed: shadowed, Delay: quantity.Duration(delay),
		Repeated: a.Decided.Repeated, FromMemory: a.FromMemory}, all[decider])
	if w.wantsStates() {
		d.Limits = w.states(l.rights, a, seed)
	}
	if !admitted {
		if len(all) > 1 && takes && w.CostOf(decider) > 0 { // the turn of the limit for which it waits longest
			retry = w.denies(decider, a).retryAfter(l.rights, seed, true)
		}
		if d.Limits != nil {
			d.Limits[decider].RetryAfter = retry
		}
		d.Reason, d.RetryAfter = w.denies(decider, a).reason(), retry
		if d.Reason == Recovering {
			d.opens = quantity.Duration(verdict.Retry)
		}
	}
	return d
}

// denies returns what one of a request's limits said. Of a charge or a question it is what it says of the
// next unit.
func (w *way) denies(i int, a queue.Answer) denies {
	cost := max(w.CostOf(i), 1)
	if w.Charge {
		cost = 1
	}
	return denies{w.Applied[i], cost, w.PortionOf(i), a.Decided.Buckets[i], a.Own().Verdicts[i], a.At(i)}
}

// reasonOf returns why a limit denies.
func reasonOf(a *rules.Applied, cost quantity.Units, s algorithms.State,
	v algorithms.Verdict, at quantity.StoreTime) Reason {
	switch {
	case cost > a.Most():
		return Never
	case a.AwayFromHome():
		return OverLimit
	case v.Retry < 0 && cost > a.Reach():
		return ExceedsRegionCapacity
	case s.Shut > at:
		return Recovering
	}
	return OverLimit
}

// weight orders limits by what they say about a request. Of an admitted request the limit with
// least remaining decides. Of a denied one, a limit that can never admit it decides, then one that
// this region's entitlement cannot hold, then the one that denies longest.
func weight(admitted bool, remaining quantity.Units, retry time.Duration, never bool) int64 {
	switch {
	case admitted:
		return int64(-remaining)
	case never:
		return math.MaxInt64
	case retry < 0:
		return math.MaxInt64 - 1
	}
	return int64(retry)
}
