package admit

import (
	"math"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/rules"
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
	d.Entitlement = a.Entitlement()
	d.Degraded = l.rights.Degraded(a.Bucket)
	return d
}

// judge turns the store's answer into a decision. The limit that decides is the one with the
// greatest weight. A shadow limit decides only if no other limit applies, and so does an
// alternative limit that did not deny although it had no room.
func (l *Limiter) judge(w *waiting, a answered) Decision {
	answer, all := a.decided.Answers[a.index], w.applied
	decider, best := 0, int64(math.MinInt64)
	var shadowed []string
	var delay int64
	spared := !w.allFull(a)
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
		weighs := weight(answer.Admitted, v, w.costOf(i) > all[i].Most())
		first := i == 0 || harmless(decider) && !shadow
		if first || shadow == harmless(decider) && weighs > best {
			decider, best = i, weighs
		}
	}
	state, verdict := a.decided.Buckets[decider], answer.Verdicts[decider]
	d := l.describe(Decision{Allowed: answer.Admitted, Reason: WithinLimit,
		Remaining:  verdict.Remaining,
		ResetAfter: microseconds(state.Reset),
		Cell:       state.Cell, At: a.at(decider),
		Share: max(state.Share, 0), Shadowed: shadowed, Delay: microseconds(delay),
		Repeated: a.decided.Repeated, FromMemory: a.fromMemory}, all[decider])
	if w.wantsStates() {
		d.Limits = l.states(w, a)
	}
	if !answer.Admitted {
		d.Reason, d.RetryAfter = OverLimit, microseconds(verdict.Retry)
		if state.Shut > a.at(decider) {
			d.Reason = Recovering
		}
		if verdict.Retry < 0 {
			d.Reason, d.RetryAfter = ExceedsRegionCapacity, -1
		}
		if all[decider].AwayFromHome() {
			d.Reason, d.RetryAfter = OverLimit, l.nextCell(all[decider], state.Cell, a.at(decider))
		}
		if w.costOf(decider) > all[decider].Most() {
			d.Reason = Never
		}
	}
	return d
}

// nextCell returns after how long a region that is entitled to nothing may borrow anew, because the
// home region has another cell's units: in its next cell. Negative: the home region cannot be
// reached.
func (l *Limiter) nextCell(a *rules.Applied, cell quantity.Cell, at quantity.StoreTime) time.Duration {
	if l.rights.Degraded(a.Bucket) {
		return -1
	}
	return max(microseconds(a.Target.Terms.Opens(cell+1).Sub(at)), time.Millisecond)
}

// weight orders limits by what they say about a request. Of an admitted request the limit with
// least remaining decides. Of a denied one, a limit that can never admit it decides, then one that
// this region's entitlement cannot hold, then the one that denies longest.
func weight(admitted bool, v algorithms.Verdict, never bool) int64 {
	switch {
	case admitted:
		return int64(-v.Remaining)
	case never:
		return math.MaxInt64
	case v.Retry < 0:
		return math.MaxInt64 - 1
	}
	return v.Retry
}
