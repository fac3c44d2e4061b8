package callers

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

func (s *Server) refund(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, r, decodeRefund, func(ctx context.Context, receipt string) (any, error) {
		done, err := s.refunded(ctx, audit.Refund, receipt, s.node.Refund)
		if errors.Is(err, receipts.ErrRefused) {
			err = wire.Refuse(http.StatusConflict, err.Error())
		}
		return refundMessage(done), err
	})
}

func refundMessage(r receipts.Refunded) *quotadv1.RefundResponse {
	charges := wire.Each(r.Charges, func(c receipts.RefundedCharge) *quotadv1.Refunded {
		return &quotadv1.Refunded{Limit: c.Limit, Units: int64(c.Units), Reason: c.Reason}
	})
	return &quotadv1.RefundResponse{Repeated: r.Repeated, Refunded: charges}
}

func takenMessage(t admit.Taken) *quotadv1.TakeResponse {
	if t.Units == 0 {
		return &quotadv1.TakeResponse{}
	}
	return &quotadv1.TakeResponse{Units: int64(t.Units), Decision: wire.DecisionMessage(t.Decision),
		SpendWithin: durationpb.New(t.SpendWithin), Receipt: t.Receipt}
}

// refunded gives back what a receipt is for, by a refund or a return of units. A text that is no
// receipt of this region is no act, and is not written down.
func (s *Server) refunded(ctx context.Context, kind audit.Act, receipt string,
	do func(ctx context.Context, receipt string) (receipts.Refunded, error)) (receipts.Refunded, error) {
	buckets, err := s.node.Receipt(receipt)
	if err != nil {
		return receipts.Refunded{}, err
	}
	e := audit.Event{Act: kind, Buckets: audited(buckets)}
	for _, b := range buckets {
		if err := s.options.MayName(ctx, b.Domain); err != nil {
			s.options.Done(ctx, e, err)
			return receipts.Refunded{}, err
		}
	}
	back, err := do(ctx, receipt)
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
