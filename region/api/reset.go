package api

import (
	"net/http"

	"github.com/quotad/quotad/quantity"
)

// reset clears the use of one bucket in this region. It breaks the limit on purpose, for the window
// in which it is called. Only operators should call it, and it must not be exposed to callers.
// There is no authentication yet and reset is served beside everything else. So a proxy that lets
// callers reach this listener must block /v1/reset, and Reset over gRPC.
func (s *Server) reset(w http.ResponseWriter, r *http.Request) {
	answer(w, r, decodeReset, func(p place) (any, error) {
		cleared, err := s.node.Reset(r.Context(), p.limit, p.domain, p.descriptors)
		return resetAnswer{cleared}, err
	})
}

// resetAnswer is the outcome of a reset as JSON.
type resetAnswer struct {
	Cleared quantity.Units `json:"cleared"` // units that counted as used before
}
