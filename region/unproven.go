package region

import (
	"context"
	"errors"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/trade/peer"
	"github.com/quotad/quotad/region/trade/rights"
)

// ErrUnproven says why a node takes nothing from others by which units, or documents, could come.
var ErrUnproven = errors.New("nothing proves who other nodes are: every region keeps its fixed split and takes documents from files and apply alone; set gossip_keys or peer_tls")

// unproven takes the place of the other nodes where anybody could pass for one of them: nothing
// that they say gives this region units, lets it forget what it used, or changes its documents. So
// it neither asks nor answers.
type unproven struct{}

var _ rights.Peers = unproven{}

func (unproven) Exchange(context.Context, string, exchange.Message) (exchange.Reply, error) {
	return exchange.Reply{}, ErrUnproven
}

func (unproven) Recall(context.Context, string, exchange.Question) (exchange.Testimonies, error) {
	return exchange.Testimonies{}, ErrUnproven
}

func (unproven) RecallAll(context.Context, string, exchange.Question, func(exchange.Testimonies)) int {
	return 0
}

func (unproven) Nodes(string) []string { return nil }

func (unproven) Copy(context.Context, string, string, copies.Part) (uint64, error) {
	return 0, ErrUnproven
}

// others returns whom this node asks for units and for what its region lost.
func (n *Node) others() rights.Peers {
	if n.config.Unproven {
		return unproven{}
	}
	return n.peers
}

// handlers returns what answers the calls of other nodes.
func (n *Node) handlers() peer.Handlers {
	h := peer.Handlers{Exchange: n.served, Recall: n.recalled, Copy: n.copyIn, Store: n.whichStore,
		Document: n.tenure.Source}
	if n.config.Unproven {
		h.Document, h.Copy = nil, nil
		h.Exchange = func(context.Context, exchange.Message) (exchange.Reply, error) {
			return exchange.Reply{}, ErrUnproven
		}
		h.Recall = func(context.Context, exchange.Question) (exchange.Testimonies, error) {
			return exchange.Testimonies{}, ErrUnproven
		}
	}
	return h
}
