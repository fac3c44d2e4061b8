package region

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/trade/peer"
)

// copyIn keeps what another node has seen of use, of this region or of another one in which it is alone.
func (n *Node) copyIn(ctx context.Context, from peer.Identity, p copies.Part) (next uint64, err error) {
	self := peer.Identity{Region: n.config.Region, Node: n.config.Node}
	switch {
	case from == self || !n.inDocument(from.Region):
		return 0, fmt.Errorf("node %s keeps no copies of %s: it is the same node, or of no region of the limits document", self, from)
	case from.Region != self.Region:
		return n.rights.CopyElsewhere(ctx, p)
	}
	return n.rights.CopyIn(p)
}
