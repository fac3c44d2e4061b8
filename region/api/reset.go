package api

import "net/http"

// reset clears the use of one bucket in this region. It breaks the limit for the window in which it is called, on
// purpose: it is an operator's act and must not be exposed to callers. There is no authentication yet and it is served
// beside all else, so whatever lets callers reach this listener must keep /v1/reset, and Reset of gRPC, from them.
func (s *Server) reset(w http.ResponseWriter, r *http.Request) {
	answer(w, r, decodeReset, func(p place) (any, error) {
		cleared, err := s.node.Reset(r.Context(), p.limit, p.domain, p.descriptors)
		return resetAnswer{cleared}, err
	})
}

// resetAnswer is what a reset did, as JSON.
type resetAnswer struct {
	Cleared int64 `json:"cleared"` // units that counted as used before
}
