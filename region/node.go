package region

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/policy"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
	"github.com/quotad/quotad/region/door"
	"github.com/quotad/quotad/region/journal"
	"github.com/quotad/quotad/region/peer"
	"github.com/quotad/quotad/region/store"
)

// Config is all a node is made of. Once Start has succeeded the node owns it, and closes it.
type Config struct {
	Region    string
	Node      string // unique in its region
	Nodes     int    // how many the region has, by configuration; at least 1
	Policy    *policy.Document
	Bootstrap bool  // this region never served before: an empty store is no loss
	Repeats   int64 // how often a request is answered that is sent again by its id; 0: algorithms.DefaultRepeats

	Store   *store.Store
	Journal *journal.Journal

	PeerListener  net.Listener   // for other regions
	PeerAdvertise string         // host:port under which they reach it
	PeerTLS       *peer.TLS      // nil: plain text, on loopback or a private network
	Packets       net.PacketConn // gossip
	Streams       net.Listener
	Advertise     netip.AddrPort
	Seeds         []string
	GossipKeys    [][]byte // the first encrypts, all decrypt; none: plain text
	Dial          func(ctx context.Context, network, address string) (net.Conn, error)

	Exchange  exchange.Options
	Memory    Memory           // what the node remembers of buckets; the zero value is the defaults
	Failpoint func(Point)      // called at points of the protocol at which a test may have the node die; nil: never
	Now       func() time.Time // the node's wall clock; nil: time.Now
	Log       *slog.Logger
}

// Node is one running node. Safe for concurrent use.
type Node struct {
	config   Config
	log      *slog.Logger
	store    *store.Store
	journal  *journal.Journal
	now      func() time.Time
	rules    atomic.Pointer[rules]
	batcher  *batcher
	engine   *engine
	fallback *fallback
	claims   *claims
	refusals *refusals // of the store
	hints    *hints
	gossip   *gossip.Gossip
	peers    *peer.Client
	server   *peer.Server
	cutter   atomic.Pointer[Cutter] // nil: the node makes no cuts
	metrics  *metrics
	panics   *door.Panics
	sequence atomic.Uint64
	receipts atomic.Uint64
	life     string                          // random; tells this start of the node from all others
	cut      atomic.Pointer[map[string]bool] // regions this node is degraded towards
	standing sync.RWMutex                    // held while generation or epoch change
	eviction atomic.Pointer[string]          // the store's maxmemory-policy; nil: not known yet
	size     atomic.Pointer[store.Size]      // what the store holds, as last read; nil: not known yet
	// evictionDue is when housekeep asks for it again.
	evictionDue time.Time
	reopen      chan struct{} // the store answered that it is not ours any more
	closed      chan struct{}
	stop        context.CancelFunc
	done        sync.WaitGroup
	seen        *seen
	times       storeTimes
	deadline    time.Duration // of a decision, requests that borrow apart
	stood       uint64        // generation this node last stood under
	ended       atomic.Uint64 // generation that is to end although the store lost nothing
	noted       atomic.Value  // what the store remembers of this node's journal
	breakers    breakers
	losses      atomic.Int64    // of the store's data, that this node found
	lostAt      atomic.Int64    // when the store last lost data, by its clock in microseconds; 0: never that it knows
	apart       map[string]bool // regions whose store's clock is too far from ours; the engine's
	books       sync.Mutex      // held while books are kept
	crowded     atomic.Bool     // gossip sees more nodes of this region than there are to be
	closing     sync.Once

	cutsRefused door.Seldom // to be logged
}

// Start opens the store and begins to serve. ctx bounds the start alone.
func Start(ctx context.Context, c Config) (*Node, error) {
	n, err := newNode(c, queueLength)
	if err != nil {
		return nil, err
	}
	n.peers = peer.NewClient(c.Dial, c.PeerTLS)
	n.server = peer.NewServer(n.engine.serve, n.engine.answer, c.PeerTLS)
	n.server.HandleCuts(n.cutOff)
	n.server.TellPanics(n.log, n.CountPanic)
	n.metrics.watch(n)
	if err := n.tryRights(ctx); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	if err := n.takeUp(ctx); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	if err := n.startGossip(); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	running, stop := context.WithCancel(context.Background())
	n.stop = stop
	for range underWay {
		n.done.Go(func() { n.batcher.run(running) })
	}
	n.done.Go(func() { n.engine.run(running) })
	n.done.Go(func() { n.watchStore(running) })
	n.done.Go(func() { n.housekeep(running) })
	n.done.Go(func() { n.keepBooks(running) })
	n.done.Go(func() { n.keepTime(running) })
	n.done.Go(func() { n.probe(running) })
	n.done.Go(func() { n.batcher.wakes.watch(running, n.deadline) })
	n.done.Go(func() { n.tryRefused(running) })
	n.done.Go(func() { _ = n.server.Serve(c.PeerListener) }) // ends with the server
	return n, nil
}

// newNode returns a node in which nothing runs, and whose store is still to be opened. So many requests may wait for the store.
func newNode(c Config, requests int) (*Node, error) {
	r, err := newRules(c.Policy, c.Region)
	if err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	n := &Node{config: c, log: c.Log, store: c.Store, journal: c.Journal, now: c.Now,
		refusals: newRefusals(c.Log, c.Now), metrics: newMetrics(), life: rand.Text(), seen: newSeen(c.Region, c.Memory, c.Store.Latest, c.Store.Surely), deadline: c.Store.Deadline(),
		reopen: make(chan struct{}, 1), closed: make(chan struct{}), apart: map[string]bool{}}
	n.panics = door.NewPanics(c.Log, "", n.CountPanic)
	n.times.journal, n.times.log = c.Journal, c.Log
	c.Store.Heed(n.heeds)
	n.claims = newClaims()
	n.fallback = newFallback(max(c.Nodes, 1), n.claimLocal)
	r.shards = c.Store.Shards()
	n.rules.Store(r)
	n.cut.Store(&map[string]bool{})
	n.breakers = newBreakers(c.Store.Shards())
	c.Exchange.Nodes = c.Nodes
	n.engine = newEngine(n, c.Exchange)
	n.batcher = newBatcher(n.store, n.seen, n.breakers, requests, n.deadline, n.engine.observe)
	n.batcher.repeats = c.Repeats
	n.hints = newHints(c.Region, c.Node, c.Journal.Incarnation(), n.now, func(h exchange.Hint) { n.engine.post(exchange.Heard{Hint: h}) })
	n.hints.inDocument = n.inDocument
	return n, nil
}

// takeUp opens the store under the node's document, which it then remembers.
func (n *Node) takeUp(ctx context.Context) error {
	document := n.config.Policy
	if err := n.checkPolicy(document); err != nil {
		return err
	}
	if err := n.firstOpen(ctx, n.config.Bootstrap); err != nil {
		return err
	}
	return n.journal.SavePolicy(document.Version, document.Source())
}

// startGossip joins the other nodes.
func (n *Node) startGossip() error {
	meta, err := proto.Marshal(&hintv1.Node{Region: n.config.Region, Node: n.config.Node, Peer: n.config.PeerAdvertise})
	if err != nil {
		return err
	}
	n.gossip, err = gossip.Start(gossip.Config{
		Name: n.config.Region + "/" + n.config.Node, Meta: meta,
		Packets: n.config.Packets, Streams: n.config.Streams, Dial: n.config.Dial, Advertise: n.config.Advertise,
		Seeds: n.config.Seeds, Remembered: n.journal.Peers(), Keys: n.config.GossipKeys,
		Admit: n.admit, MaxGroup: n.config.mostMembers(),
		State: n.hints, Logger: n.log, Recovered: n.panics.Recovered, OnChange: n.membersChanged,
	})
	return err
}

// broadcast gossips a hint.
func (n *Node) broadcast(h exchange.Hint) {
	b, err := n.hints.publish(h)
	if err == nil {
		err = n.gossip.Broadcast(hintKey{h.Region, h.Node, h.Bucket}.gossiped(), b)
	}
	if err != nil {
		n.log.Debug("hint not sent", "err", err)
	}
}

// housekeep drops what no longer weighs.
func (n *Node) housekeep(ctx context.Context) {
	every := time.NewTicker(10 * time.Second)
	defer every.Stop()
	n.watchEviction(ctx, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			n.watchEviction(ctx, now)
			n.hints.forget(now)
			n.membersChanged(n.gossip.Members()) // addresses that answered are not kept for ever
			n.fallback.forget(now)
			n.seen.forget()
			n.watchMemory()
			if err := n.journal.RememberPeers(n.gossip.Remembered()); err != nil {
				n.log.Error("the journal cannot remember peers", "err", err)
			}
			n.prune()
		}
	}
}

// keepBooks writes down use, and charges in the store what was admitted without it.
func (n *Node) keepBooks(ctx context.Context) {
	every := time.NewTicker(bookEvery)
	defer every.Stop()
	written := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			n.books.Lock()
			n.book(ctx)
			if now.Sub(written) >= checkpointEvery-bookEvery/2 { // ticks are lost where the disk is slow
				written = now
				n.checkpoint(ctx, false)
			}
			n.books.Unlock()
		}
	}
}

const (
	bookEvery       = 200 * time.Millisecond
	checkpointEvery = time.Second
)

// prune drops the journal's records that no longer weigh in any shard of the store, by its time, nor by this node's clock,
// which the claims of its local part go by. A clock that is ahead drops nothing.
func (n *Node) prune() {
	before := min(n.store.Surely(), n.now().UnixMicro())
	for {
		pruned, err := n.journal.Prune(before)
		if err != nil {
			n.log.Error("the journal cannot be pruned", "err", err)
		}
		if err != nil || pruned < journal.PruneLimit {
			return
		}
	}
}

// setDegraded keeps the regions that this node is degraded towards, for decisions.
func (n *Node) setDegraded(ages []exchange.PeerAge) {
	old := *n.cut.Load()
	var changed bool
	for _, a := range ages {
		changed = changed || old[a.Peer] != a.Degraded
	}
	if !changed && len(old) == len(ages) {
		return
	}
	now := make(map[string]bool, len(ages))
	for _, a := range ages {
		now[a.Peer] = a.Degraded
		if was, known := old[a.Peer]; known && was != a.Degraded {
			level := slog.LevelInfo
			if a.Degraded {
				level = slog.LevelWarn
			}
			n.log.Log(context.Background(), level, "peer region", "region", a.Peer, "degraded", a.Degraded)
		}
	}
	n.cut.Store(&now)
}

// degraded says whether any region that a bucket's limit is split over has not answered lately.
func (n *Node) degraded(b *exchange.Bucket) bool {
	for region, cut := range *n.cut.Load() {
		if cut && b.Entitlements[region] > 0 {
			return true
		}
	}
	return false
}

// Ready says why the node should not be sent requests; nil: it should. A node serves as soon as its store
// is open, and until that refuses everything; regions that do not answer only degrade it.
func (n *Node) Ready() error {
	if n.store.Generation() == 0 {
		return store.ErrNotOpen
	}
	return n.refusals.ready()
}

// Close ends the node at once; Leave first if others should not wait for it.
func (n *Node) Close() error {
	var err error
	n.closing.Do(func() {
		close(n.closed)
		n.stop()
		n.server.Close()
		err = errors.Join(n.gossip.Close(), n.peers.Close())
		n.done.Wait()
		err = errors.Join(err, n.journal.Close(), n.store.Close())
	})
	return err
}

// SetGossipKeys puts other keys in force for gossip: the first encrypts, all decrypt. Where none were given at the
// start, or none are given now, it fails and changes nothing.
func (n *Node) SetGossipKeys(keys [][]byte) error { return n.gossip.SetKeys(keys) }

// Leave tells the others that this node goes.
func (n *Node) Leave(ctx context.Context) error { return n.gossip.Leave(ctx) }

// Members returns the names of the nodes that gossip sees alive.
func (n *Node) Members() []string {
	var names []string
	for _, m := range n.gossip.Members() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}
