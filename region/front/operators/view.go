package operators

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/trade/peer"
)

// view describes this node to another one, or to an operator. What it is asked for is within the
// bounds of package view.
func (s *Server) view(ctx context.Context, q *quotadv1.ViewRequest) *quotadv1.View {
	v := &quotadv1.View{}
	if !q.GetBucketsOnly() {
		v.Node = s.nodeView(int(q.GetHottest()))
	}
	for _, id := range q.GetBuckets() {
		v.Buckets = append(v.Buckets, s.bucketView(ctx, policy.BucketID(id), q.GetExplain()))
	}
	return v
}

func (s *Server) nodeView(hottest int) *quotadv1.NodeView {
	n := &quotadv1.NodeView{Status: statusMessage(s.node.Status(), s.life.Ready()),
		Started: timestamppb.New(s.node.Started()), At: timestamppb.Now(),
		Limits: s.limitViews()}
	if hottest > 0 {
		hot, since := s.node.Hottest(hottest)
		n.CountedSince = ifSet(since)
		for _, h := range hot {
			n.Hottest = append(n.Hottest, &quotadv1.HotBucket{Bucket: []byte(h.ID),
				AdmittedUnits: int64(h.Units.Admitted), DeniedUnits: int64(h.Units.Denied),
				MissedUnits: h.Missed})
		}
	}
	return n
}

// limitViews returns the limits of the document in force of which requests were decided, those with
// the most units first.
func (s *Server) limitViews() (all []*quotadv1.LimitView) {
	units := s.node.UnitsByLimit()
	document := s.node.Document()
	for i := range document.Limits {
		l := &document.Limits[i]
		u, met := units[l.Name]
		if !met {
			continue
		}
		delete(units, l.Name) // limits of one name are counted together
		all = append(all, &quotadv1.LimitView{Limit: l.Name, Domain: l.Domain,
			Algorithm: string(l.Algorithm), LimitUnits: int64(l.Limit),
			Window: durationpb.New(l.WindowAt(time.Now())), Key: l.Key, Shadow: asjson.Some(l.Shadow),
			AdmittedUnits: whole(u.Admitted), DeniedUnits: whole(u.Denied)})
	}
	slices.SortStableFunc(all, func(a, b *quotadv1.LimitView) int {
		return cmp.Compare(b.AdmittedUnits+b.DeniedUnits, a.AdmittedUnits+a.DeniedUnits)
	})
	return all[:min(len(all), peer.MaxLimitViews)]
}

// whole returns a count as a whole number.
func whole(n float64) int64 { return int64(min(n, math.MaxInt64/4)) }

// bucketView tells how a bucket stands in this region.
func (s *Server) bucketView(ctx context.Context, id policy.BucketID, peek bool) *quotadv1.BucketView {
	known := s.node.Status()
	v := &quotadv1.BucketView{Region: known.Region, Node: known.Node, Epoch: known.Epoch}
	look, err := s.node.LookAt(ctx, id, peek)
	switch {
	case errors.Is(err, rules.ErrNoSuchBucket):
		v.Problem = "the limits document in force there has no such limit"
		return v
	case err != nil:
		v.Problem = err.Error()
		return v
	}
	v.Ledger, v.Epoch, v.ClosedUntil = bucketMessage(look.Bucket), look.Epoch, ifSet(look.ClosedUntil)
	v.PrefetchedUnits = int64(look.Prefetched)
	if peek {
		v.Now = wire.DecisionMessage(look.Now)
	}
	if look.LastKnown {
		v.Last = lastMessage(look.Last, known.Node)
	}
	if look.Denies {
		v.RememberDenial = []string{known.Node}
	}
	for _, h := range look.Envoys {
		v.Envoys = append(v.Envoys, envoyMessage(h, known.Node))
	}
	for _, d := range look.Degraded {
		v.Degraded = append(v.Degraded,
			&quotadv1.DegradedTowards{Region: d.Region, Since: ifSet(d.Since)})
	}
	return v
}

func bucketMessage(b region.Bucket) *quotadv1.BucketResponse {
	found := b.Inspected
	m := &quotadv1.BucketResponse{Limit: b.Limit.Name, LimitUnits: int64(b.Limit.Limit),
		Entitlement: int64(b.Terms.Entitlement), Cell: int64(found.Cell),
		Used: int64(found.Used), Share: int64(found.Share), NextShare: int64(found.NextShare),
		Algorithm: string(b.Terms.Kind), Free: int64(found.Free),
		Fading: int64(found.Fading), ClosedUntil: ifSet(b.ClosedUntil),
		Assigned:     asjson.Some(int64(found.Assigned(found.Cell))),
		NextAssigned: asjson.Some(int64(found.Assigned(found.Cell + 1))),
		Owed:         owed(b),
		Classes:      classRooms(b)}
	if b.Terms.Kind.Bucket() {
		m.Burst = (*int64)(&b.Terms.Burst)
	}
	for _, r := range found.Traded() {
		rights := &quotadv1.Rights{Cell: int64(r.Cell), Region: r.Peer, Lent: int64(r.Lent),
			Returned: int64(r.Returned), Borrowed: int64(r.Borrowed), Regained: int64(r.Regained)}
		if b.Terms.Kind == algorithms.TokenBucket {
			rights.BurstLent, rights.BurstBorrowed = (*int64)(&r.BurstLent), (*int64)(&r.BurstBorrowed)
		}
		m.Rights = append(m.Rights, rights)
	}
	return m
}

// classRooms returns what each class may use of a bucket, or nil if its limit has none.
func classRooms(b region.Bucket) *quotadv1.ClassRooms {
	if b.Limit.Classes == nil {
		return nil
	}
	found := &b.Inspected.State
	all := &quotadv1.ClassRooms{By: b.Limit.Classes.By}
	has := found.Share
	if b.Terms.Kind.Bucket() {
		has = found.Used + found.Free
	}
	for _, c := range b.Limit.Classes.All {
		part := quantity.PPM(c.Part)
		all.All = append(all.All, &quotadv1.ClassRoom{Class: c.Name, MayUse: int64(algorithms.Portion(max(has, 0), part)),
			Free: int64(max(found.Free-found.Withheld(b.Terms.Kind, part), 0))})
	}
	return all
}

// owed returns how many units a bucket owes, or nil if its limit is not charged always.
func owed(b region.Bucket) *int64 {
	if b.Limit.Charge != policy.ChargeAlways {
		return nil
	}
	found := b.Inspected
	has := found.Share
	if b.Terms.Kind.Bucket() {
		has = b.Terms.Burst
		for _, r := range found.Traded() {
			if r.Cell == found.Cell {
				has += r.BurstBorrowed - r.BurstLent
			}
		}
	}
	return new(int64(max(found.Used-max(has, 0), 0)))
}

func envoyMessage(h assign.Holding, node string) *quotadv1.EnvoyView {
	m := &quotadv1.EnvoyView{Node: node, Stream: int64(h.Stream), Rate: h.Rate, Burst: int64(h.Burst),
		Left: durationpb.New(time.Duration(h.Left) * time.Microsecond), Silent: asjson.Some(h.Silent), Gone: asjson.Some(h.Gone)}
	if h.Demand >= 0 {
		m.WantsMilli = &h.Demand
	}
	return m
}

func lastMessage(l admit.LastOutcome, node string) *quotadv1.LastRequest {
	return &quotadv1.LastRequest{At: timestamppb.New(l.At), Node: node, Allowed: l.Admitted,
		Reason: wire.Reasons[l.Reason], FromMemory: asjson.Some(l.FromMemory)}
}
