package region

import (
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	hintv1 "github.com/quotad/quotad/proto/hint/v1"
)

// NodeAddresses returns the IP addresses of the nodes that gossip sees alive, by region and
// including this node. These are the addresses from which the nodes gossip, and those at which they
// serve other regions unless these are names.
func (n *Node) NodeAddresses() map[string][]netip.Addr {
	all := map[string][]netip.Addr{}
	for _, m := range n.gossip.Members() {
		var meta hintv1.Node
		if proto.Unmarshal(m.Meta, &meta) != nil {
			continue
		}
		found := []netip.Addr{m.Addr.Addr().Unmap()}
		if peer, err := netip.ParseAddrPort(meta.GetPeer()); err == nil {
			found = append(found, peer.Addr().Unmap())
		}
		for _, ip := range found {
			if r := meta.GetRegion(); !slices.Contains(all[r], ip) {
				all[r] = append(all[r], ip)
			}
		}
	}
	return all
}
