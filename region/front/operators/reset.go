package operators

import (
	"context"
	"net/http"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

// reset clears the use of one bucket in this region. It breaks the limit on purpose, for the window
// in which it is called. So it is on the admin listener, and is audited.
func (s *Server) reset(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, r, decodeReset, func(p place) (any, error) {
		cleared, err := s.clear(wire.WithAct(r), p)
		return resetAnswer{cleared}, err
	})
}

// clear clears the use of a bucket.
func (s *Server) clear(ctx context.Context, p place) (cleared quantity.Units, err error) {
	if err = s.options.MayName(ctx, p.domain); err == nil {
		cleared, err = s.node.Reset(ctx, p.limit, p.domain, p.descriptors)
	}
	s.options.Done(ctx, audit.Event{Act: audit.Reset, Units: int64(cleared),
		Buckets: []audit.Bucket{{Domain: p.domain, Limit: p.limit, Key: p.descriptors}}}, err)
	return cleared, err
}

// resetAnswer is the outcome of a reset as JSON.
type resetAnswer struct {
	Cleared quantity.Units `json:"cleared"` // units that counted as used before
}

var resetFields = []string{"limit", "domain", "descriptors"}

// decodeReset reads the JSON of a reset, which the node checks. Every error is a *admit.FieldError.
func decodeReset(body []byte) (p place, err error) {
	err = wire.Decode(body, resetFields, func(d *wire.Decoder, name string) (err error) {
		switch name {
		case "limit":
			p.limit, err = d.Text(name)
		case "domain":
			p.domain, err = d.Text(name)
		case "descriptors":
			p.descriptors, err = d.Texts(name)
		}
		return err
	})
	return p, err
}
