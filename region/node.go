package region

import (
	"context"
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
	"github.com/quotad/quotad/region/admit"
	"github.com/quotad/quotad/region/door"
	"github.com/quotad/quotad/region/journal"
	"github.com/quotad/quotad/region/peer"
	"github.com/quotad/quotad/region/repeat"
	"github.com/quotad/quotad/region/rights"
	"github.com/quotad/quotad/region/store"
	"github.com/quotad/quotad/region/tenure"
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
	Memory    rights.Memory      // what the node remembers of buckets; the zero value is the defaults
	Failpoint func(rights.Point) // called at points of the protocol at which a test may have the node die; nil: never
	Now       func() time.Time   // the node's wall clock; nil: time.Now
	Log       *slog.Logger
}

// Node is one running node. Safe for concurrent use.
type Node struct {
	config  Config
	log     *slog.Logger
	tenure  *tenure.Tenure
	rights  *rights.Engine
	limiter *admit.Limiter
	gossip  *gossip.Gossip
	peers   *peer.Client
	server  *peer.Server
	cuts    cuts
	memory  storeMemory
	metrics *metrics
	panics  *door.Panics
	books   sync.Mutex  // held while use is written down, or charged
	crowded atomic.Bool // gossip sees more nodes of this region than there are to be
	life    life
}

// life is how a node ends.
type life struct {
	closed  chan struct{} // closed at once when it is to end
	stop    context.CancelFunc
	done    sync.WaitGroup // goroutines
	closing sync.Once
}

// Start opens the store and begins to serve. ctx bounds the start alone.
func Start(ctx context.Context, c Config) (*Node, error) {
	n, err := New(c, Stepping{})
	if err != nil {
		return nil, err
	}
	n.server = peer.NewServer(n.rights.Serve, n.rights.Answer, c.PeerTLS)
	n.server.HandleCuts(n.cutOff)
	n.server.TellPanics(n.log, n.CountPanic)
	n.metrics.watch(n)
	if err := n.tenure.TryRights(ctx); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	if err := n.tenure.Open(ctx); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	if err := n.startGossip(); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	n.run()
	return n, nil
}

// run begins what a node does until it is closed.
func (n *Node) run() {
	running, stop := context.WithCancel(context.Background())
	n.life.stop = stop
	for _, each := range []func(context.Context){n.limiter.Run, n.rights.Run, n.tenure.Watch, n.tenure.KeepTime,
		n.tenure.TryRefused, n.housekeep, n.keepBooks} {
		n.life.done.Go(func() { each(running) })
	}
	n.life.done.Go(func() { _ = n.server.Serve(n.config.PeerListener) }) // ends with the server
}

// Stepping is how a node is stepped by hand. The zero value is a node that runs by itself.
type Stepping struct {
	// Taken takes the events of the exchange machine, in place of a goroutine that has the machine hear them.
	Taken func(exchange.Event)
}

// Wings returns the three parts that a node consists of, for whoever steps it by hand.
func (n *Node) Wings() (*tenure.Tenure, *rights.Engine, *admit.Limiter) {
	return n.tenure, n.rights, n.limiter
}

// New returns a node in which nothing runs, and whose store is still to be opened: for whoever steps a node by hand. Of c what
// concerns other nodes is not used then: listeners, addresses, dialer and keys.
func New(c Config, stepped Stepping) (*Node, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Exchange.Nodes = c.Nodes
	n := &Node{config: c, log: c.Log, life: life{closed: make(chan struct{})}, peers: peer.NewClient(c.Dial, c.PeerTLS)}
	n.panics = door.NewPanics(c.Log, "", n.CountPanic)
	var err error
	n.tenure, err = tenure.New(tenure.Config{Region: c.Region, Node: c.Node, Bootstrap: c.Bootstrap, Policy: c.Policy,
		Store: c.Store, Journal: c.Journal, Now: c.Now, Log: c.Log, Changed: n.changed, Closed: n.life.closed})
	if err != nil {
		return nil, err
	}
	n.rights = rights.New(rights.Config{Region: c.Region, Node: c.Node, Options: c.Exchange, Memory: c.Memory, Store: c.Store,
		Journal: c.Journal, Tenure: n.tenure, Peers: n.peers, Broadcast: n.broadcast, Taken: stepped.Taken, Failpoint: c.Failpoint,
		Now: c.Now, Log: c.Log, Closed: n.life.closed})
	n.limiter = admit.New(admit.Config{Region: c.Region, Node: c.Node, Nodes: c.Nodes, Repeats: c.Repeats, Stepped: stepped.Taken != nil,
		Store: c.Store, Journal: c.Journal, Tenure: n.tenure, Rights: n.rights, Now: c.Now, Log: c.Log, Closed: n.life.closed})
	n.metrics = newMetrics(n)
	return n, nil
}

// changed hands on that the store may be used on other terms.
func (n *Node) changed(c tenure.Change) {
	n.limiter.Changed(c)
	n.rights.Changed(c)
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
		Seeds: n.config.Seeds, Remembered: n.config.Journal.Peers(), Keys: n.config.GossipKeys,
		Admit: n.admit, MaxGroup: n.config.maxMembers(),
		State: n.rights.Hints(), Logger: n.log, Recovered: n.panics.Recovered, OnChange: n.membersChanged,
	})
	return err
}

// broadcast gossips a hint.
func (n *Node) broadcast(name string, hint []byte) error { return n.gossip.Broadcast(name, hint) }

// housekeepEvery is how often a node drops what no longer weighs.
const housekeepEvery = 10 * time.Second

// housekeep drops what no longer weighs.
func (n *Node) housekeep(ctx context.Context) {
	n.watchEviction(ctx, time.Now())
	repeat.Every(ctx, housekeepEvery, func(now time.Time) {
		n.watchEviction(ctx, now)
		n.membersChanged(n.gossip.Members()) // addresses that answered are not kept for ever
		n.rights.WatchMemory()
		if err := n.config.Journal.RememberPeers(n.gossip.Remembered()); err != nil {
			n.log.Error("the journal cannot remember peers", "err", err)
		}
		n.Forget(now)
	})
}

// Forget drops what weighs no more at a time, from memory and journal.
func (n *Node) Forget(now time.Time) {
	n.rights.Forget(now)
	n.limiter.Forget(now)
	n.prune()
}

const (
	settleEvery     = 200 * time.Millisecond
	checkpointEvery = time.Second
)

// keepBooks writes down use, and charges in the store what was admitted without it.
func (n *Node) keepBooks(ctx context.Context) {
	written := time.Now()
	repeat.Every(ctx, settleEvery, func(now time.Time) {
		n.books.Lock()
		n.limiter.SettleLocal(ctx)
		if now.Sub(written) >= checkpointEvery-settleEvery/2 { // ticks are lost where the disk is slow
			written = now
			n.rights.Checkpoint(ctx, false)
		}
		n.books.Unlock()
	})
}

// prune drops the journal's records that no longer weigh in any shard of the store, by its time, nor by this node's clock,
// which the claims of its local part go by. A clock that is ahead drops nothing.
func (n *Node) prune() {
	before := min(n.config.Store.Surely(), n.config.Now().UnixMicro())
	for {
		pruned, err := n.config.Journal.Prune(before)
		if err != nil {
			n.log.Error("the journal cannot be pruned", "err", err)
		}
		if err != nil || pruned < journal.PruneLimit {
			return
		}
	}
}

// Ready says why the node should not be sent requests; nil: it should. A node serves as soon as its store
// is open, and until that refuses everything; regions that do not answer only degrade it.
func (n *Node) Ready() error {
	return n.tenure.Ready()
}

// Close ends the node at once; Leave first if others should not wait for it.
func (n *Node) Close() error {
	var err error
	n.life.closing.Do(func() {
		close(n.life.closed)
		n.life.stop()
		n.server.Close()
		err = errors.Join(n.gossip.Close(), n.peers.Close())
		n.life.done.Wait()
		err = errors.Join(err, n.config.Journal.Close(), n.config.Store.Close())
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

// Adopt puts another limits document in force; see [tenure.Tenure.Adopt].
func (n *Node) Adopt(ctx context.Context, d *policy.Document) error { return n.tenure.Adopt(ctx, d) }

// Check decides a request; see [admit.Limiter.Check].
func (n *Node) Check(ctx context.Context, q admit.Request) (admit.Decision, error) {
	return n.limiter.Check(ctx, q)
}

// CheckBatch decides several requests; see [admit.Limiter.CheckBatch].
func (n *Node) CheckBatch(ctx context.Context, all []admit.Request) ([]admit.Decision, error) {
	return n.limiter.CheckBatch(ctx, all)
}

// Peek says what Check would answer, and charges nothing.
func (n *Node) Peek(ctx context.Context, q admit.Request) (admit.Decision, error) {
	return n.limiter.Peek(ctx, q)
}

// Refund takes back what a decision charged; see [admit.Limiter.Refund].
func (n *Node) Refund(ctx context.Context, receipt string) (admit.Refunded, error) {
	return n.limiter.Refund(ctx, receipt)
}

// Reset clears the use of one bucket; see [admit.Limiter.Reset].
func (n *Node) Reset(ctx context.Context, limit, domain string, descriptors map[string]string) (cleared int64, err error) {
	return n.limiter.Reset(ctx, limit, domain, descriptors)
}

// Busy says whether so much of a caller waits that a batch of it is better refused unread; see [admit.Limiter.Busy].
func (n *Node) Busy(caller string) (retry time.Duration, busy bool) { return n.limiter.Busy(caller) }
