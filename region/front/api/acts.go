package api

import (
	"context"
	"errors"
	"net/netip"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/roles"
)

// anonymous is the name of callers on a port that asks nobody for a name.
const anonymous = "anonymous"

// done writes an act down, with what came of it.
func (s *Server) done(ctx context.Context, e audit.Event, err error) {
	e.Who, e.From, e.Outcome = anonymous, actOf(ctx).from, audit.Done
	if c := roles.From(ctx); c != nil {
		e.Who = c.Name
	}
	if err != nil {
		e.Outcome, e.Why = audit.Failed, err.Error()
		if _, refused := errors.AsType[*roles.Refusal](err); refused {
			e.Outcome = audit.Refused
		}
	}
	s.options.Audit.Write(e)
}

// clear clears the use of a bucket.
func (s *Server) clear(ctx context.Context, p place) (cleared quantity.Units, err error) {
	if err = s.mayNameAdmin(ctx, p.domain); err == nil {
		cleared, err = s.node.Reset(ctx, p.limit, p.domain, p.descriptors)
	}
	s.done(ctx, audit.Event{Act: audit.Reset, Units: int64(cleared),
		Buckets: []audit.Bucket{{Domain: p.domain, Limit: p.limit, Key: p.descriptors}}}, err)
	return cleared, err
}

// refunded gives back what a receipt is for, by a refund or a return of units. A text that is no
// receipt of this region is no act, and is not written down.
func (s *Server) refunded(ctx context.Context, kind audit.Act, receipt string,
	do func() (admit.Refunded, error)) (admit.Refunded, error) {
	buckets, err := s.node.Receipt(receipt)
	if err != nil {
		return admit.Refunded{}, err
	}
	e := audit.Event{Act: kind, Buckets: audited(buckets)}
	for _, b := range buckets {
		if err := s.mayName(ctx, b.Domain); err != nil {
			s.done(ctx, e, err)
			return admit.Refunded{}, err
		}
	}
	back, err := do()
	for _, c := range back.Charges {
		e.Units = max(e.Units, int64(c.Units))
	}
	if back.Repeated {
		e.Detail, e.Units = "given back before, and not again", 0
	}
	s.done(ctx, e, err)
	return back, err
}

// audited names buckets for the audit log.
func audited(refs []policy.BucketRef) []audit.Bucket {
	all := make([]audit.Bucket, len(refs))
	for i, r := range refs {
		all[i] = audit.Bucket{Domain: r.Domain, Limit: r.Name, Key: map[string]string{}}
		for _, part := range r.Key {
			all[i].Key[part.Name] = part.Value
		}
	}
	return all
}

// cutOff makes a cut, or heals one.
func (s *Server) cutOff(ctx context.Context, q cutting) ([]netip.Addr, error) {
	cut, err := s.cutter.Cut(q.region, q.direction, q.d)
	e := audit.Event{Act: audit.Cut, Region: q.region, Detail: q.direction + " for " + q.d.String()}
	if q.d == 0 {
		e.Act, e.Detail = audit.Heal, q.direction
	}
	s.done(ctx, e, err)
	return cut, err
}
