package api

import (
	"net/http"
	"strings"

	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/audit"
)

func (s *Server) refund(w http.ResponseWriter, r *http.Request) {
	answer(w, r, decodeRefund, func(receipt string) (any, error) {
		done, err := s.refunded(withAct(r), audit.Refund, receipt, func() (admit.Refunded, error) {
			return s.node.Refund(r.Context(), receipt)
		})
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
