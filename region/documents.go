package region

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/trade/peer"
)

// NodeDocuments is what one node says of the limits documents of its region.
type NodeDocuments struct {
	Node string         // REGION/NODE
	Open []policy.Epoch // in its region, the oldest first; none: it does not serve
	// File is why the document of the node's file is not open; empty: it is, or was.
	File string
}

// Adopt opens another limits document in this region, and so, by and by, in the others. See
// [tenure.Tenure.Adopt].
func (n *Node) Adopt(ctx context.Context, d *policy.Document) error {
	return n.tenure.Adopt(ctx, d)
}

// Document returns the newest document that is open in this region. It matches requests.
func (n *Node) Document() *policy.Document { return n.tenure.Rules().Document }

// NoteFile notes why the document of the node's file is not open, nil if it is.
func (n *Node) NoteFile(err error) {
	if f, is := errors.AsType[*policy.Fault](err); is {
		n.panics.Recovered("document", f)
	}
	n.tenure.NoteFile(err)
}

// AskDocuments asks all nodes of all regions which documents are open there. It returns the answers
// that come before ctx ends, this node's among them, by name.
func (n *Node) AskDocuments(ctx context.Context) []NodeDocuments {
	self := peer.Identity{Region: n.config.Region, Node: n.config.Node}
	all := []NodeDocuments{nodeDocuments(peer.StoreAnswer{Node: self.String(),
		Documents: n.rights.Documents(), File: n.fileRefused()})}
	var mates []peer.StoreAnswer
	var asking sync.WaitGroup
	asking.Go(func() { mates, _ = n.peers.AskStore(ctx, self.Region, self, nil) })
	others, _ := n.askEveryone(ctx)
	asking.Wait()
	for _, a := range append(others, mates...) {
		all = append(all, nodeDocuments(a))
	}
	slices.SortFunc(all, func(a, b NodeDocuments) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

func nodeDocuments(a peer.StoreAnswer) NodeDocuments {
	return NodeDocuments{Node: a.Node, Open: epochsOf(a.Documents), File: a.File}
}

func epochsOf(all []exchange.Acknowledged) (epochs []policy.Epoch) {
	for _, d := range all {
		epochs = append(epochs, policy.Epoch{Version: d.Version, Digest: d.Digest})
	}
	return epochs
}

// fileRefused says why the document of the node's file is not open; empty: it is, or was.
func (n *Node) fileRefused() string {
	if err := n.tenure.FileRefused(); err != nil {
		return err.Error()
	}
	return ""
}
