package callers

import (
	"context"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/audit"
)

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
		if err := s.options.MayName(ctx, b.Domain); err != nil {
			s.options.Done(ctx, e, err)
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
	s.options.Done(ctx, e, err)
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
