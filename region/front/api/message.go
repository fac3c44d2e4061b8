package api

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/tenure"
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

func statusMessage(s region.Status, notReady error) *quotadv1.StatusResponse {
	return &quotadv1.StatusResponse{Region: s.Region, Node: s.Node, Version: version(),
		Epoch:      s.Epoch,
		Generation: s.Generation, Ready: notReady == nil, Mates: s.Mates,
		Store: storeMessage(s.Store), Journal: journalMessage(s.Journal),
		Recovery: &quotadv1.RecoveryStatus{Waiting: s.Exchange.Recovering - s.Exchange.PartlyKnown,
			PartlyKnown: s.Exchange.PartlyKnown, Recovered: s.Exchange.Recovered,
			Closed: each(s.Closed, func(c admit.Closed) *quotadv1.ClosedLimit {
				return &quotadv1.ClosedLimit{Limit: c.Limit, Until: timestamppb.New(c.Until)}
			}),
			Limits: each(s.Recovering, func(r region.Recovering) *quotadv1.RecoveringLimit {
				return &quotadv1.RecoveringLimit{Limit: r.Limit, Buckets: int64(r.Buckets), Units: int64(r.Units),
					Since: timestamppb.New(r.Since)}
			})},
		Local: &quotadv1.LocalStatus{Buckets: int64(s.Local.Buckets), Units: int64(s.Local.Units),
			Unbooked: s.Local.Unbooked},
		Documents: documentsMessage(s.Documents),
		Peers: each(s.Peers, func(p region.Peer) *quotadv1.Peer {
			return &quotadv1.Peer{Region: p.Region, Heard: p.Heard, Age: durationpb.New(p.Age),
				RoundTrip: durationpb.New(p.RoundTrip), Degraded: p.Degraded,
				ClockApart: ifKnown(p.ClockApart, p.ClockKnown)}
		})}
}

func storeMessage(s region.StoreStatus) *quotadv1.StoreStatus {
	var others []*quotadv1.StoreRival
	for _, r := range s.Rivals {
		others = append(others, &quotadv1.StoreRival{Node: r.Node, Id: r.Origin.ID,
			Stopped: r.Stopped, Hearsay: r.Hearsay})
	}
	return &quotadv1.StoreStatus{Id: s.ID, Stopped: textOf(s.Stopped), Rivals: others,
		Nodes: int64(s.Nodes), Kind: s.Kind, Address: s.Address, Data: s.Data,
		LastLoss: ifSet(s.LastLoss), Losses: s.Losses,
		OutOfReach: s.OutOfReach, MaxmemoryPolicy: s.Eviction, ClockApart: ifKnown(s.ClockApart,
			s.ClockKnown),
		Refusing: each(s.Refusing, func(r tenure.Refusal) *quotadv1.StoreRefusal {
			return &quotadv1.StoreRefusal{Kind: r.Kind, Calls: r.Calls, Advice: r.Advice}
		})}
}

func journalMessage(j region.JournalStatus) *quotadv1.JournalStatus {
	return &quotadv1.JournalStatus{Incarnation: j.Incarnation, Sequence: j.Sequence, Rows: j.Rows,
		Checkpoints: j.Checkpoints,
		Whole:       j.Whole, WholeSince: ifSet(j.WholeSince), Failed: j.Failed}
}

// ifKnown returns nil for a duration that is not known. The duration may be negative.
func ifKnown(d time.Duration, known bool) *durationpb.Duration {
	if !known {
		return nil
	}
	return durationpb.New(d)
}

// ifSet returns nil for the zero time.
func ifSet(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func bucketMessage(b region.Bucket) *quotadv1.BucketResponse {
	found := b.Inspected
	m := &quotadv1.BucketResponse{Limit: b.Limit.Name, LimitUnits: int64(b.Limit.Limit),
		Entitlement: int64(b.Terms.Entitlement), Cell: int64(found.Cell),
		Used: int64(found.Used), Share: int64(found.Share), NextShare: int64(found.NextShare),
		Algorithm: string(b.Terms.Kind), Free: int64(found.Free),
		Fading: int64(found.Fading), Burst: int64(b.Terms.Burst), ClosedUntil: ifSet(b.ClosedUntil),
		Assigned: int64(found.Assigned(found.Cell)), NextAssigned: int64(found.Assigned(found.Cell + 1))}
	for _, r := range found.Traded() {
		m.Rights = append(m.Rights, &quotadv1.Rights{Cell: int64(r.Cell), Region: r.Peer,
			Lent: int64(r.Lent), Returned: int64(r.Returned),
			Borrowed: int64(r.Borrowed), Regained: int64(r.Regained), BurstLent: int64(r.BurstLent),
			BurstBorrowed: int64(r.BurstBorrowed)})
	}
	return m
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
