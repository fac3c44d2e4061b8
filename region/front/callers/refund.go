package callers

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

func (s *Server) refund(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, r, decodeRefund, func(ctx context.Context, receipt string) (any, error) {
		done, err := s.refunded(ctx, audit.Refund, receipt, func() (admit.Refunded, error) {
			return s.node.Refund(ctx, receipt)
		})
		if errors.Is(err, admit.ErrReceipt) {
			err = wire.Refuse(http.StatusConflict, receiptRefused(err))
		}
		return refundMessage(done), err
	})
}

const (
	receiptMend = "send the receipt as it was given to the region of the decision; trying again here does not help"
	// maxReceiptBytes bounds the text about a receipt that cannot be refunded, because it repeats
	// what the caller sent.
	maxReceiptBytes = 256
)

// receiptRefused returns why a receipt cannot be refunded, and what to do.
func receiptRefused(err error) string {
	why := err.Error()
	if len(why) > maxReceiptBytes {
		why = strings.ToValidUTF8(why[:maxReceiptBytes], "") + "..."
	}
	return why + "; " + receiptMend
}

func refundMessage(r admit.Refunded) *quotadv1.RefundResponse {
	charges := wire.Each(r.Charges, func(c admit.RefundedCharge) *quotadv1.Refunded {
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
