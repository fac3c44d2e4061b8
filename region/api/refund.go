package api

import (
	"net/http"
	"strings"

	"github.com/quotad/quotad/region/admit"
)

// refundAnswer is admit.Refunded as JSON.
type refundAnswer struct {
	Repeated bool           `json:"repeated"`
	Refunded []chargeAnswer `json:"refunded"`
}

type chargeAnswer struct {
	Limit  string `json:"limit"`
	Units  int64  `json:"units"`
	Reason string `json:"reason,omitempty"` // why nothing was given back; absent if something was
}

func newRefund(r admit.Refunded) refundAnswer {
	a := refundAnswer{Repeated: r.Repeated, Refunded: []chargeAnswer{}}
	for _, c := range r.Charges {
		a.Refunded = append(a.Refunded, chargeAnswer{c.Limit, c.Units, c.Reason})
	}
	return a
}

func (s *Server) refund(w http.ResponseWriter, r *http.Request) {
	receipt, err := readBody(w, r, decodeRefund)
	var done admit.Refunded
	if err == nil {
		done, err = s.node.Refund(r.Context(), receipt)
	}
	if err != nil {
		writeProblem(w, toProblem(err))
		return
	}
	write(w, "application/json", http.StatusOK, newRefund(done))
}

const (
	receiptMend = "send the receipt as it was given to the region of the decision; trying again here does not help"
	// mostReceiptBytes bounds the text about a receipt that cannot be refunded, because it repeats
	// what the caller sent.
	mostReceiptBytes = 256
)

// receiptRefused returns why a receipt cannot be refunded, and what to do.
func receiptRefused(err error) string {
	why := err.Error()
	if len(why) > mostReceiptBytes {
		why = strings.ToValidUTF8(why[:mostReceiptBytes], "") + "..."
	}
	return why + "; " + receiptMend
}
