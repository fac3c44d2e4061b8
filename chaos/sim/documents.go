package sim

import (
	"context"
	"errors"

	"github.com/quotad/quotad/policy"
)

var errNoDocument = errors.New("nobody there has the document")

// fetch asks a node of another region for a limits document. The answer takes no time, unless the
// way there or back is cut.
func (n *node) fetch(_ context.Context, region string, e policy.Epoch) ([]byte, error) {
	to := n.target(region)
	if to == nil || to.live == nil || n.w.now < to.paused || n.w.wires[n.r.index][to.r.index].cut > 0 ||
		n.w.wires[to.r.index][n.r.index].cut > 0 {
		return nil, errNoDocument
	}
	if source := to.live.Source(e.Digest); source != nil {
		return source, nil
	}
	return nil, errNoDocument
}
