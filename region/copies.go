package region

import (
	"fmt"

	"github.com/quotad/quotad/region/copies"
	"github.com/quotad/quotad/region/peer"
)

// copyIn keeps what another node of this region has seen of use.
func (n *Node) copyIn(from peer.Identity, p copies.Part) (next uint64, err error) {
	if from.Region != n.config.Region || from.Node == n.config.Node {
		return 0, fmt.Errorf("node %s keeps no copies of %s: they are of other regions, or of the same node",
			peer.Identity{Region: n.config.Region, Node: n.config.Node}, from)
	}
	return n.rights.CopyIn(p)
}
