package region

import (
	"context"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

// What tests of package region_test see of a node.
const (
	FewestMembers = fewestMembers
	BookEvery     = bookEvery
)

// AheadReady is the part of Ready that is about clocks.
func (n *Node) AheadReady() error { return n.aheads.ready() }

// IsAhead reports whether the time of the node's store is ahead of all clocks.
func (n *Node) IsAhead() bool { return n.ahead(n.config.Store.Latest()) > clockAhead }

// MayGoBack is mayGoBack.
func (n *Node) MayGoBack(told store.Told) error { return n.mayGoBack(told) }

// Sees is sees.
func (n *Node) Sees(name string, life uint64) bool { return n.sees(name, life) }

// Served is served.
func (n *Node) Served(ctx context.Context, m exchange.Message) (exchange.Reply, error) {
	return n.served(ctx, m)
}

// Peers returns what calls the nodes of other regions.
func (n *Node) Peers() *peer.Client { return n.peers }

// MembersChanged is membersChanged.
func (n *Node) MembersChanged(members []gossip.Member) { n.membersChanged(members) }

// Ends is the first thing that Close does.
func (n *Node) Ends() { close(n.life.closed) }
