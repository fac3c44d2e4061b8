package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
	"github.com/quotad/quotad/region/trade/second"
)

// newSecond returns the watch that finds out that this region has two stores.
func (n *Node) newSecond() *second.Watch {
	self := peer.Identity{Region: n.config.Region, Node: n.config.Node}
	return second.New(second.Config{Self: self.String(), Tenure: n.tenure, Alone: n.config.Alone,
		Own: n.config.Store.Origin, Known: n.config.Journal.Generation, Shown: n.Shown, Log: n.log,
		Verify: n.verify, Renew: n.tenure.EndGeneration,
		Mates: func(ctx context.Context, confirm *store.Confirmation) []peer.StoreAnswer {
			answers, _ := n.peers.AskStore(ctx, self.Region, self, confirm)
			return answers
		},
		Everyone: n.askEveryone, Hearsay: n.hearsay, Join: n.join,
		Tell: n.tellStore})
}

// verify reports whether the store answers this node now, under the generation that it knows.
func (n *Node) verify(ctx context.Context) bool {
	return n.config.Store.Beat(ctx, n.tenure.Rules().Epoch) == nil
}

// askEveryone asks the nodes of all other regions of the document what they know of this region's
// store. It returns their answers, and how many nodes were asked.
func (n *Node) askEveryone(ctx context.Context) (all []peer.StoreAnswer, asked int) {
	self := peer.Identity{Region: n.config.Region, Node: n.config.Node}
	type told struct {
		answers []peer.StoreAnswer
		asked   int
	}
	peers := n.tenure.Rules().Peers
	tell := make(chan told, len(peers))
	for _, region := range peers {
		go func() {
			answers, asked := n.peers.AskStore(ctx, region, self, nil)
			tell <- told{answers, asked}
		}()
	}
	for range peers {
		t := <-tell
		all, asked = append(all, t.answers...), asked+t.asked
	}
	return all, asked
}

// hearsay returns what gossip shows of the stores of the other nodes of this region.
func (n *Node) hearsay() (all []peer.StoreAnswer) {
	if n.gossip == nil {
		return nil
	}
	for _, m := range n.gossip.Members() {
		is, err := memberOf(m)
		if err == nil && is.Region == n.config.Region && is.Node != n.config.Node {
			all = append(all, is.store)
		}
	}
	return all
}

// storeOf returns what a member says of its region's store.
func storeOf(name string, s *hintv1.Store) peer.StoreAnswer {
	a := peer.StoreAnswer{Node: name, Origin: store.Origin{ID: s.GetId(), Since: s.GetSince(),
		Generation: s.GetGeneration()}}
	switch {
	case s == nil:
	case s.GetStopped():
		a.Use = peer.StoreStopped
	default:
		a.Use = peer.StoreDecides
	}
	return a
}

// joinPoll is how often join looks whether gossip has found another node.
const joinPoll = 50 * time.Millisecond

// join waits until gossip has called all seeds and remembered peers once, and with wait until it
// has found another node, or ctx ends. It reports whether there is anybody to call.
func (n *Node) join(ctx context.Context, wait bool) (any bool) {
	if n.gossip == nil {
		return false
	}
	any = n.gossip.FirstCalls(ctx)
	for wait && any && len(n.gossip.Members()) < 2 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(joinPoll):
		}
	}
	n.membersChanged(n.gossip.Members())
	return any
}

// Shown returns the latest time that the store has answered this node with. Before it has in this
// life, that is the latest that it may have answered in the last one.
func (n *Node) Shown() quantity.StoreTime {
	if at := n.config.Store.Latest(); at > 0 {
		return at
	}
	_, latest := n.config.Journal.StoreTime()
	if n.forgets.Load() {
		latest = min(latest, quantity.StoreTime(n.config.Now().UnixMicro()))
	}
	return latest
}

// mayBegin asks the other nodes before this node begins a generation of its store, and returns what
// they told of it. A node that is stepped by hand has no gossip.
func (n *Node) mayBegin(ctx context.Context, b store.Beginning) (store.Told, error) {
	if n.gossip == nil {
		if n.config.Ask == nil {
			return store.Told{}, nil
		}
		told, answers := n.config.Ask(b)
		return told, n.learnElsewhere(ctx, b, answers)
	}
	told, err := n.second.MayBegin(ctx, b)
	if err == nil {
		err = n.mayGoBack(told)
	}
	if err == nil && b.First && !n.config.Alone && !n.config.Unproven {
		answers, _ := n.askEveryone(ctx)
		err = n.learnElsewhere(ctx, b, answers)
	}
	return told, err
}

// learnElsewhere finds out, before this region's first generation, which limits documents are open
// in other regions. A region that is new has nothing until those that shrink for it have
// acknowledged its document, and may be the only one to whom that was given so far.
func (n *Node) learnElsewhere(ctx context.Context, b store.Beginning, answers []peer.StoreAnswer) error {
	if !b.First {
		return nil
	}
	var older tenure.Elsewhere
	for _, answer := range answers {
		region, _, _ := strings.Cut(answer.Node, "/")
		for _, d := range answer.Documents {
			e := policy.Epoch{Version: d.Version, Digest: d.Digest}
			a := n.tenure.Rules().View.Agenda
			if a.Has(e) || older.Has(e) {
				continue
			}
			if err := a.Check(e); errors.Is(err, barrier.ErrConflict) {
				return fmt.Errorf("--bootstrap is refused, for document %s is open in region %s, and %s here: %w",
					e, region, a, err)
			}
			source, err := n.config.Fetch(ctx, region, e)
			if err != nil {
				return fmt.Errorf("--bootstrap is refused, for document %s, which is open in region %s, cannot be fetched there: %w",
					e, region, err)
			}
			if err := older.Add(e, source); err != nil {
				return err
			}
		}
	}
	if len(older.Documents) == 0 {
		return nil
	}
	all := slices.Concat(n.tenure.Rules().View.Agenda.Documents(), older.Documents)
	joined, err := barrier.Union(all...)
	if err == nil {
		err = joined.Follows()
	}
	if err != nil {
		return fmt.Errorf("--bootstrap is refused: %w", err)
	}
	return &older
}

// whichStore answers a node that asks which store this node decides with. It confirms another node of
// its region what that found of the store, unless it decides with its own.
func (n *Node) whichStore(ctx context.Context, from peer.Identity, confirm *store.Confirmation) peer.StoreAnswer {
	mate := from.Region == n.config.Region
	a := n.second.Serve(ctx, from.Region, mate)
	a.Documents, a.File, a.Clock = n.rights.Documents(), n.fileRefused(), n.config.Now()
	a.Confirms = confirm != nil && mate && a.Use != peer.StoreDecides && n.Confirms(*confirm)
	return a
}

// Confirms reports whether a store knows all that this node had from it. From then on nothing counts that
// the store answers this node under the same generation.
func (n *Node) Confirms(c store.Confirmation) bool {
	seen, _ := n.config.Journal.StoreTime()
	if n.tenure.Rules().Epoch != c.Epoch { // a document that was put in force may be forgotten there
		return false
	}
	defer n.tenure.Reopen()
	return n.config.Store.Confirm(c, n.config.Node, n.config.Journal.Generation(), seen)
}

// Waive takes the operator's word about all losses of the region's store so far: what nobody can tell
// was not used, and not lent. Limits may be exceeded by that.
func (n *Node) Waive(ctx context.Context) error { return n.tenure.Waive(ctx) }

// awaitOpen waits until the store is open, or ctx ends.
func (n *Node) awaitOpen(ctx context.Context) error {
	select {
	case <-n.life.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// served answers a peer's message, once the store is open and while it is used. So peers turn to
// another node of this region if this one has stopped. It notes which generation of its store the
// peer's region has.
func (n *Node) served(ctx context.Context, m exchange.Message) (exchange.Reply, error) {
	if err := n.awaitOpen(ctx); err != nil {
		return exchange.Reply{}, err
	}
	if stopped := n.tenure.Stopped(); stopped != nil {
		return exchange.Reply{}, stopped
	}
	if m.From != n.config.Region && n.inDocument(m.From) {
		n.second.Heard(m.From, m.Generation)
	}
	return n.rights.Serve(ctx, m)
}

// recalled answers the question of a node that recovers, once the store is open.
func (n *Node) recalled(ctx context.Context, q exchange.Question) (exchange.Testimonies, error) {
	if err := n.awaitOpen(ctx); err != nil {
		return exchange.Testimonies{}, err
	}
	return n.rights.Answer(ctx, q)
}

// meta returns what this node tells all others of itself.
func (n *Node) meta() ([]byte, error) {
	is := &hintv1.Node{Region: n.config.Region, Node: n.config.Node, Peer: n.config.PeerAdvertise, Life: n.config.Life}
	if o := n.config.Store.Origin(); o.ID != "" {
		is.Store = &hintv1.Store{Id: o.ID, Since: o.Since, Generation: o.Generation,
			Stopped: n.tenure.Stopped() != nil}
	}
	return proto.Marshal(is)
}

// tellStore tells the other nodes by gossip which store this node has, if that has changed.
func (n *Node) tellStore() {
	meta, err := n.meta()
	if err == nil {
		err = n.gossip.SetMeta(meta)
	}
	if err != nil {
		n.log.Error("the other nodes are not told which store this node has", "err", err)
	}
}
