package region

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/trade/peer"
)

// HandleDescribe has this node describe itself to other nodes with describe. Until then it does not
// answer them.
func (n *Node) HandleDescribe(describe peer.DescribeHandler) { n.server.HandleDescribe(describe) }

// silentPatience is how long AskViews waits for a region that has not answered lately.
const silentPatience = 300 * time.Millisecond

// AskViews asks all other nodes of all regions to describe themselves, and returns the answers that
// come before ctx ends. It waits less for regions that this node is degraded towards.
func (n *Node) AskViews(ctx context.Context, q *quotadv1.ViewRequest) []*quotadv1.View {
	self := peer.Identity{Region: n.config.Region, Node: n.config.Node}
	regions := append(slices.Clone(n.tenure.Rules().Peers), n.config.Region)
	answers := make([][]*quotadv1.View, len(regions))
	var asking sync.WaitGroup
	for i, region := range regions {
		asking.Go(func() {
			waiting := ctx
			if n.rights.DegradedTowards(region) {
				short, cancel := context.WithTimeout(ctx, silentPatience)
				defer cancel()
				waiting = short
			}
			answers[i] = n.peers.AskViews(waiting, region, self, q)
		})
	}
	asking.Wait()
	return slices.Concat(answers...)
}

// Expected returns the nodes that gossip sees, as REGION/NODE, and the regions of the limits
// document of which it sees none.
func (n *Node) Expected() []string {
	all := n.Members()
	for _, r := range n.tenure.Rules().Document.Regions {
		if !slices.ContainsFunc(all, func(m string) bool { return strings.HasPrefix(m, r.Name+"/") }) {
			all = append(all, r.Name)
		}
	}
	return all
}
