package operators

import (
	"context"
	"net/http"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

// reset clears the use of one bucket in this region. It breaks the limit on purpose, for the window
// in which it is called. So it is on the admin listener, and is audited.
func (s *Server) reset(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, r, decodeReset, func(ctx context.Context, p place) (any, error) {
		var cleared quantity.Units
		err := s.options.MayName(ctx, p.domain)
		if err == nil {
			cleared, err = s.node.Reset(ctx, p.limit, p.domain, p.descriptors)
		}
		s.options.Done(ctx, audit.Event{Act: audit.Reset, Units: int64(cleared),
			Buckets: []audit.Bucket{{Domain: p.domain, Limit: p.limit, Key: p.descriptors}}}, err)
		return resetAnswer{cleared}, err
	})
}

// resetAnswer is the outcome of a reset as JSON.
type resetAnswer struct {
	Cleared quantity.Units `json:"cleared"` // units that counted as used before
}

var resetFields = []string{"limit", "domain", "descriptors"}

// decodeReset reads the JSON of a reset, which the node checks. Every error is an *invalid.Field.
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

var recoverFields = []string{"region"}

// decodeRecover reads the JSON of the operator's word about a region's losses.
func decodeRecover(body []byte) (name string, err error) {
	err = wire.Decode(body, recoverFields, func(d *wire.Decoder, field string) (err error) {
		name, err = d.Text(field)
		return err
	})
	return name, err
}

// waive takes the operator's word about the losses of the region's store so far: what nobody can tell
// was not used. It breaks limits, and is audited.
func (s *Server) waive(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, r, decodeRecover, func(ctx context.Context, name string) (any, error) {
		status := s.node.Status()
		if name != status.Region {
			return nil, invalid.Fieldf("region", "is %q, and this node is of %q: ask a node of the region that is to recover", name, status.Region)
		}
		err := s.node.Waive(ctx)
		s.options.Done(ctx, audit.Event{Act: audit.Recover, Region: name}, err)
		return &quotadv1.RecoverResponse{Region: name,
			Limits: wire.Each(status.Recovering, recoveringMessage)}, err
	})
}
