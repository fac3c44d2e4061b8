package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
)

// Reasons are the reasons of decisions as messages have them.
var Reasons = map[admit.Reason]quotadv1.Reason{
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

// DecisionMessage returns a decision as a message.
func DecisionMessage(d admit.Decision) *quotadv1.Decision {
	return &quotadv1.Decision{
		Allowed:     d.Allowed,
		Reason:      Reasons[d.Reason],
		Limit:       d.Limit,
		LimitUnits:  int64(d.LimitUnits),
		Remaining:   int64(d.Remaining),
		ResetAfter:  IfPositive(d.ResetAfter),
		RetryAfter:  IfPositive(d.RetryAfter),
		Cell:        int64(d.Cell),
		AtUs:        int64(d.At),
		Node:        d.Node,
		Region:      d.Region,
		Entitlement: int64(d.Entitlement),
		Share:       int64(d.Share),
		Degraded:    d.Degraded,
		Sequence:    d.Sequence,
		Shadowed:    d.Shadowed,
		Delay:       IfPositive(d.Delay),
		Receipt:     d.Receipt,
		Repeated:    d.Repeated,
		Algorithm:   string(d.Algorithm),
		Problem:     Complaint(d),
		FromMemory:  d.FromMemory,
		Undecided:   d.Undecided,
		Epoch:       d.Epoch,
		Owed:        int64(d.Owed),
		Class:       d.Class,
		Kept:        int64(d.Kept),
		Window:      IfPositive(d.Window),
		Unit:        d.Unit,
		Limits:      limitMessages(d.Limits),
	}
}

// Complaint says what is wrong with a request that was answered as InvalidRequest. It is empty for
// all others.
func Complaint(d admit.Decision) string {
	if d.Problem == nil {
		return ""
	}
	return Safe(d.Problem).Error()
}

func limitMessages(all []admit.LimitState) []*quotadv1.LimitState {
	if len(all) < 2 {
		return nil
	}
	messages := make([]*quotadv1.LimitState, len(all))
	for i, s := range all {
		m := &quotadv1.LimitState{Limit: s.Limit, Algorithm: string(s.Algorithm),
			LimitUnits: int64(s.LimitUnits), Window: durationpb.New(s.Window), Admits: s.Admits,
			Shadow: s.Shadow, ResetAfter: IfPositive(s.ResetAfter),
			RetryAfter: IfPositive(s.RetryAfter), Entitlement: int64(s.Entitlement),
			Share: int64(s.Share), Degraded: s.Degraded, Owed: int64(s.Owed), Class: s.Class, Kept: int64(s.Kept),
			Unit: s.Unit}
		if s.Counted {
			m.Remaining = (*int64)(&s.Remaining)
		}
		messages[i] = m
	}
	return messages
}

// IfPositive returns nil for a duration that means "unknown", "never" or "at once".
func IfPositive(d time.Duration) *durationpb.Duration {
	if d <= 0 {
		return nil
	}
	return durationpb.New(d)
}

// Each returns what a function makes of each element. It returns an empty list for nil, so that
// JSON has [] and not null.
func Each[A, B any](all []A, of func(A) B) []B {
	made := make([]B, len(all))
	for i, one := range all {
		made[i] = of(one)
	}
	return made
}
