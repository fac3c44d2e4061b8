package peer

import (
	"fmt"

	"github.com/quotad/quotad/algorithms"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// maxShards bounds the shards of a store that a message may name.
const maxShards = 1 << 10

func confirmationToProto(c *store.Confirmation) *peerv1.Confirmation {
	if c == nil {
		return nil
	}
	p := &peerv1.Confirmation{Generation: c.Generation, Epoch: c.Epoch, Begun: timesToProto(c.Begun), Replids: c.Replids}
	for node, times := range c.Nodes {
		p.Nodes = append(p.Nodes, &peerv1.NodeTimes{Node: node, Times: timesToProto(times)})
	}
	return p
}

// confirmationFromProto reads what a node is to confirm; nil: nothing. It fails if that is more
// than a store can have.
func confirmationFromProto(p *peerv1.Confirmation) (*store.Confirmation, error) {
	if p == nil {
		return nil, nil
	}
	if len(p.GetNodes()) > algorithms.MaxNodes || max(len(p.GetBegun()), len(p.GetReplids())) > maxShards {
		return nil, fmt.Errorf("a confirmation names %d nodes and %d shards, and may name %d and %d",
			len(p.GetNodes()), len(p.GetBegun()), algorithms.MaxNodes, maxShards)
	}
	c := &store.Confirmation{Generation: p.GetGeneration(), Epoch: p.GetEpoch(), Begun: timesFromProto(p.GetBegun()), Replids: p.GetReplids(),
		Nodes: map[string][]quantity.StoreTime{}}
	for _, n := range p.GetNodes() {
		c.Nodes[n.GetNode()] = timesFromProto(n.GetTimes())
	}
	return c, nil
}

func timesToProto(times []quantity.StoreTime) []int64 {
	all := make([]int64, len(times))
	for i, at := range times {
		all[i] = int64(at)
	}
	return all
}

func timesFromProto(p []int64) []quantity.StoreTime {
	all := make([]quantity.StoreTime, len(p))
	for i, at := range p {
		all[i] = quantity.StoreTime(at)
	}
	return all
}
