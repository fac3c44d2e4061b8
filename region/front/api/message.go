package api

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
)

var reasons = map[admit.Reason]quotadv1.Reason{
	admit.WithinLimit:           quotadv1.Reason_REASON_WITHIN_LIMIT,
	admit.NoLimit:               quotadv1.Reason_REASON_NO_LIMIT,
	admit.OverLimit:             quotadv1.Reason_REASON_OVER_LIMIT,
	admit.Recovering:            quotadv1.Reason_REASON_RECOVERING,
	admit.ExceedsRegionCapacity: quotadv1.Reason_REASON_EXCEEDS_REGION_CAPACITY,
	admit.Never:                 quotadv1.Reason_REASON_NEVER,
	admit.QueueFull:             quotadv1.Reason_REASON_QUEUE_FULL,
	admit.StoreFailure:          quotadv1.Reason_REASON_STORE_FAILURE,
	admit.StoreFailureLocal:     quotadv1.Reason_REASON_STORE_FAILURE_LOCAL,
	admit.StoreFailureAllowed:   quotadv1.Reason_REASON_STORE_FAILURE_ALLOWED,
	admit.Denied:                quotadv1.Reason_REASON_DENIED,
	admit.InvalidRequest:        quotadv1.Reason_REASON_INVALID_REQUEST,
}

func decisionMessage(d admit.Decision) *quotadv1.Decision {
	return &quotadv1.Decision{
		Allowed:     d.Allowed,
		Reason:      reasons[d.Reason],
		Limit:       d.Limit,
		LimitUnits:  int64(d.LimitUnits),
		Remaining:   int64(d.Remaining),
		ResetAfter:  ifPositive(d.ResetAfter),
		RetryAfter:  ifPositive(d.RetryAfter),
		Cell:        int64(d.Cell),
		AtUs:        int64(d.At),
		Node:        d.Node,
		Region:      d.Region,
		Entitlement: int64(d.Entitlement),
		Share:       int64(d.Share),
		Degraded:    d.Degraded,
		Sequence:    d.Sequence,
		Shadowed:    d.Shadowed,
		Delay:       ifPositive(d.Delay),
		Receipt:     d.Receipt,
		Repeated:    d.Repeated,
		Algorithm:   string(d.Algorithm),
		Problem:     problemOf(d),
		FromMemory:  d.FromMemory,
		Undecided:   d.Undecided,
		Epoch:       d.Epoch,
		Limits:      limitMessages(d.Limits),
	}
}

func limitMessages(all []admit.LimitState) []*quotadv1.LimitState {
	if len(all) < 2 {
		return nil
	}
	messages := make([]*quotadv1.LimitState, len(all))
	for i, s := range all {
		m := &quotadv1.LimitState{Limit: s.Limit, Algorithm: string(s.Algorithm),
			LimitUnits: int64(s.LimitUnits), Window: durationpb.New(s.Window), Admits: s.Admits,
			Shadow: s.Shadow, ResetAfter: ifPositive(s.ResetAfter),
			RetryAfter: ifPositive(s.RetryAfter), Entitlement: int64(s.Entitlement),
			Share: int64(s.Share), Degraded: s.Degraded}
		if s.Counted {
			m.Remaining = (*int64)(&s.Remaining)
		}
		messages[i] = m
	}
	return messages
}

// ifPositive returns nil for a duration that means "unknown", "never" or "at once".
func ifPositive(d time.Duration) *durationpb.Duration {
	if d <= 0 {
		return nil
	}
	return durationpb.New(d)
}

func refundMessage(r admit.Refunded) *quotadv1.RefundResponse {
	charges := each(r.Charges, func(c admit.RefundedCharge) *quotadv1.Refunded {
		return &quotadv1.Refunded{Limit: c.Limit, Units: int64(c.Units), Reason: c.Reason}
	})
	return &quotadv1.RefundResponse{Repeated: r.Repeated, Refunded: charges}
}

func takenMessage(t admit.Taken) *quotadv1.TakeResponse {
	if t.Units == 0 {
		return &quotadv1.TakeResponse{}
	}
	return &quotadv1.TakeResponse{Units: int64(t.Units), Decision: decisionMessage(t.Decision),
		SpendWithin: durationpb.New(t.SpendWithin), Receipt: t.Receipt}
}

// each returns what a function makes of each element. It returns an empty list for nil, so that
// JSON has [] and not null.
func each[A, B any](all []A, of func(A) B) []B {
	made := make([]B, len(all))
	for i, one := range all {
		made[i] = of(one)
	}
	return made
}
