package operators

import (
	"context"
	"fmt"
	"net/http"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

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
	wire.Answer(w, r, decodeRecover, func(name string) (any, error) {
		waiting, err := s.waived(wire.WithAct(r), name)
		return &quotadv1.RecoverResponse{Region: name, Limits: wire.Each(waiting, recoveringMessage)}, err
	})
}

func (s *Server) waived(ctx context.Context, name string) (waiting []region.Recovering, err error) {
	status := s.node.Status()
	if name != status.Region {
		return nil, &admit.FieldError{Field: "region",
			Problem: fmt.Sprintf("is %q, and this node is of %q: ask a node of the region that is to recover", name, status.Region)}
	}
	err = s.node.Waive(ctx)
	s.options.Done(ctx, audit.Event{Act: audit.Recover, Region: name}, err)
	return status.Recovering, err
}
