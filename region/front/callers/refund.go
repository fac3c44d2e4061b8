package callers

import (
	"errors"
	"net/http"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

func (s *Server) refund(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, r, decodeRefund, func(receipt string) (any, error) {
		done, err := s.refunded(wire.WithAct(r), audit.Refund, receipt, func() (admit.Refunded, error) {
			return s.node.Refund(r.Context(), receipt)
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
