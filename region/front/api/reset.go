package api

import (
	"net/http"

	"github.com/quotad/quotad/quantity"
)

// reset clears the use of one bucket in this region. It breaks the limit on purpose, for the window
// in which it is called. So it is on the admin listener, and is audited.
func (s *Server) reset(w http.ResponseWriter, r *http.Request) {
	answer(w, r, decodeReset, func(p place) (any, error) {
		cleared, err := s.clear(withAct(r), p)
		return resetAnswer{cleared}, err
	})
}

// resetAnswer is the outcome of a reset as JSON.
type resetAnswer struct {
	Cleared quantity.Units `json:"cleared"` // units that counted as used before
}
