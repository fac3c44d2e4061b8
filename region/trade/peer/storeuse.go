package peer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// StoreUse says what a node does with its store.
type StoreUse int

// What a node does with its store.
const (
	StoreUnsure  StoreUse = iota // it does not answer, or does not know the node, or there is none
	StoreDecides                 // it has just answered the node
	StoreStopped                 // the node does not use it, because the region has an older one
)

// StoreAnswer is what a node says of its region's store.
type StoreAnswer struct {
	Node string // REGION/NODE
	// Origin is the store that the node opened. It is zero if the node is of another region than
	// the asker.
	Origin store.Origin
	Use    StoreUse
	// Known is the highest generation of the asker's store that the node knows of; 0: none.
	Known uint64
	// Outlasted has the IDs of stores whose nodes stopped in favour of this one, at most
	// MaxOutlasted.
	Outlasted []string
	// Shown is the latest time that the asker's store has answered the node with; 0: none, or the
	// node is of another region.
	Shown quantity.StoreTime
	// Documents are the limits documents that are open in the node's region; none before it serves.
	Documents []exchange.Acknowledged
	// File is why the document in the node's file is not open, at most MaxFileRefused bytes; empty:
	// it is.
	File string
	// Confirms says that the node confirms what it was asked to.
	Confirms bool
	// Clock is the node's wall clock when it answered; zero: it did not tell.
	Clock time.Time
}

const (
	// MaxFileRefused bounds what a node says of its file.
	MaxFileRefused = 512
	// MaxOutlasted bounds the stores that a node says to have outlasted.
	MaxOutlasted = 16
	// MaxStoreID bounds the ID of a store. An honest one has 32 bytes.
	MaxStoreID = 64
)

// StoreHandler answers a node that asks which store this node decides with, and, unless confirm is
// nil, to confirm what is said of one.
type StoreHandler func(ctx context.Context, from Identity, confirm *store.Confirmation) StoreAnswer

var (
	toUse = map[peerv1.StoreUse]StoreUse{
		peerv1.StoreUse_STORE_USE_DECIDES: StoreDecides,
		peerv1.StoreUse_STORE_USE_STOPPED: StoreStopped}
	fromUse = map[StoreUse]peerv1.StoreUse{
		StoreDecides: peerv1.StoreUse_STORE_USE_DECIDES,
		StoreStopped: peerv1.StoreUse_STORE_USE_STOPPED}
)

// Store implements peerv1.PeerServiceServer.
func (s *Server) Store(ctx context.Context, p *peerv1.StoreRequest) (*peerv1.StoreResponse, error) {
	from := Identity{p.GetRegion(), p.GetNode()}
	if err := s.authenticate(ctx, from); err != nil {
		return nil, err
	}
	if s.handlers.Store == nil {
		return s.UnimplementedPeerServiceServer.Store(ctx, p)
	}
	confirm, err := confirmationFromProto(p.GetConfirmation())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	a := s.handlers.Store(ctx, from, confirm)
	region, node, _ := strings.Cut(a.Node, "/")
	answer := &peerv1.StoreResponse{Region: region, Node: node, Use: fromUse[a.Use],
		KnownGeneration: a.Known, Outlasted: a.Outlasted, StoreTime: int64(a.Shown),
		Documents: documentsToProto(a.Documents), FileRefused: short(a.File), Confirms: a.Confirms, Clock: a.Clock.UnixMicro()}
	if o := a.Origin; o.ID != "" {
		answer.Store = &peerv1.StoreOrigin{Id: o.ID, Since: o.Since, Generation: o.Generation}
	}
	return answer, nil
}

// AskStore asks all nodes of a region that are known which store they decide with, at once, and
// returns the answers that come before ctx ends, and how many nodes were asked. An answer in the
// name of another region, or not in the form that nodes use, is dropped. Unless confirm is nil, they
// are asked to confirm that, too.
func (c *Client) AskStore(ctx context.Context, region string, self Identity,
	confirm *store.Confirmation) (all []StoreAnswer, asked int) {
	asked = c.everyNode(region, func(node peerv1.PeerServiceClient) func() {
		p, err := node.Store(ctx, &peerv1.StoreRequest{Region: self.Region, Node: self.Node,
			Confirmation: confirmationToProto(confirm)})
		if err != nil {
			return nil
		}
		a, ok := storeAnswer(p, region)
		if !ok {
			return nil
		}
		return func() { all = append(all, a) }
	})
	return all, asked
}

// Runs reports whether a node answers at an address, as itself, before ctx ends.
func (c *Client) Runs(ctx context.Context, is Identity, address string) bool {
	conn, err := c.conn(node{is.Region, address})
	if err != nil {
		return false
	}
	p, err := peerv1.NewPeerServiceClient(conn).Store(ctx,
		&peerv1.StoreRequest{Region: is.Region, Node: is.Node})
	if err != nil {
		return false
	}
	a, ok := storeAnswer(p, is.Region)
	return ok && a.Node == is.String()
}

// everyNode calls ask for all nodes of a region that are known, at once, and returns how many these
// are. The functions that ask returns are called one after the other, if they are not nil.
func (c *Client) everyNode(region string, ask func(peerv1.PeerServiceClient) func()) (asked int) {
	c.mu.Lock()
	addresses := slices.Clone(c.nodes[region])
	c.mu.Unlock()
	var mu sync.Mutex
	var calls sync.WaitGroup
	for _, address := range addresses {
		calls.Go(func() {
			conn, err := c.conn(node{region, address})
			if err != nil {
				return
			}
			if keep := ask(peerv1.NewPeerServiceClient(conn)); keep != nil {
				mu.Lock()
				defer mu.Unlock()
				keep()
			}
		})
	}
	calls.Wait()
	return len(addresses)
}

// storeAnswer reads an answer. It reports whether that is in the form that nodes use.
func storeAnswer(p *peerv1.StoreResponse, region string) (a StoreAnswer, ok bool) {
	is := Identity{p.GetRegion(), p.GetNode()}
	if _, err := is.URI(); err != nil || is.Region != region ||
		len(p.GetStore().GetId()) > MaxStoreID {
		return a, false
	}
	a = StoreAnswer{Node: is.String(), Use: toUse[p.GetUse()], Known: p.GetKnownGeneration(),
		Origin: store.Origin{ID: p.GetStore().GetId(), Since: p.GetStore().GetSince(),
			Generation: p.GetStore().GetGeneration()}}
	if at := p.GetStoreTime(); at > 0 && at <= algorithms.MaxUnits {
		a.Shown = quantity.StoreTime(at)
	}
	a.Documents, a.File = documentsFromProto(p.GetDocuments()), short(p.GetFileRefused())
	a.Confirms = p.GetConfirms()
	if at := p.GetClock(); at > 0 && at <= algorithms.MaxUnits {
		a.Clock = time.UnixMicro(at)
	}
	for _, id := range p.GetOutlasted() {
		if len(id) <= MaxStoreID && len(a.Outlasted) < MaxOutlasted {
			a.Outlasted = append(a.Outlasted, id)
		}
	}
	return a, true
}

// short cuts a text to MaxFileRefused bytes.
func short(text string) string {
	if len(text) > MaxFileRefused {
		text = text[:MaxFileRefused]
	}
	return strings.ToValidUTF8(text, "")
}
