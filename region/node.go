package region

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
	"github.com/quotad/quotad/region/trade/rights"
	"github.com/quotad/quotad/region/trade/second"
)

// MaxNodes is far above any region's need of nodes. A larger number is a mistake.
const MaxNodes = 10_000

// Config holds what a node consists of. Once Start has succeeded the node owns the store, the
// journal and the sockets, and closes them.
type Config struct {
	Region    string
	Node      string // unique in its region
	Nodes     int    // the region's number of nodes by configuration, at least 1
	Policy    *policy.Document
	Bootstrap bool // the region never served before: an empty store is not a loss
	// TrustClock says that this node opens its store though its clock is ahead of all others'.
	TrustClock bool
	// ForgetStoreTime says that this node forgets that its store's time was ahead of its clock: the
	// operator has emptied the store.
	ForgetStoreTime bool
	// Alone says that nobody need be asked before Bootstrap is believed.
	Alone bool
	// Wait is how long a request waits for its turn whose caller names no time. 0:
	// admit.DefaultWait.
	Wait time.Duration

	Store   *store.Store
	Journal *journal.Journal

	PeerListener  net.Listener   // for calls of other regions
	PeerAdvertise string         // host:port at which other regions reach it
	PeerTLS       *peer.TLS      // nil: plain text, for loopback or a private network
	Packets       net.PacketConn // gossip
	Streams       net.Listener
	Advertise     netip.AddrPort
	Seeds         []string
	GossipKeys    [][]byte // the first encrypts, each may decrypt; none: plain text
	// Unproven says that anybody could pass for another node. The node then takes nothing from
	// others by which units or documents could come; see ErrUnproven.
	Unproven bool
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)

	Exchange exchange.Options
	// Memory bounds what the node remembers of buckets. The zero value stands for the defaults.
	Memory rights.Memory
	// Fetch returns the text of a limits document that another region has. nil: the node asks it.
	Fetch func(ctx context.Context, region string, e policy.Epoch) ([]byte, error)
	// Adopted is called with each document that is open here because another node of this or
	// another region has it, the newest one of before, and where it came from. nil: nobody is told.
	Adopted func(before, d *policy.Document, from string)
	// Ask asks the nodes that a node which is stepped by hand reaches, before it begins a generation
	// of its store: what those of its region tell, and what those of other regions answer. nil: it
	// reaches nobody.
	Ask func(store.Beginning) (told store.Told, answers []peer.StoreAnswer)
	// Life tells this start of the node from others; 0: a random number.
	Life uint64
	// Alive reports whether gossip sees a life of a node, named REGION/NODE; 0: any life. nil: gossip is asked.
	Alive func(name string, life uint64) bool
	// Failpoint is called at points of the protocol where a test may end the node. nil: no calls.
	Failpoint func(rights.Point)
	Now       func() time.Time // the node's wall clock; nil: time.Now
	// Elapsed returns the time since any one moment by a clock that is never set. nil: this
	// process's.
	Elapsed func() time.Duration
	Log     *slog.Logger
}

// Node is one running node. Safe for concurrent use.
type Node struct {
	Decisions // of the limiter

	config  Config
	log     *slog.Logger
	tenure  *tenure.Tenure
	rights  *rights.Engine
	limiter *admit.Limiter
	envoys  *envoys.Assigner
	second  *second.Watch
	gossip  *gossip.Gossip
	peers   *peer.Client
	server  *peer.Server
	memory  storeMemory
	metrics *metrics
	panics  *door.Panics
	books   sync.Mutex // held while use is written to the journal or charged
	mates   mates
	aheads  aheadWatch
	forgets atomic.Bool // others are not told of a time that is ahead and that the journal remembers
	taken   TakenBack
	started time.Time
	elapsed func() time.Duration // since then, by a clock that is never set
	life    life
}

// life is what ends a node.
type life struct {
	opened  chan struct{} // closed once the store was opened
	closed  chan struct{} // closed as soon as the node is to end
	stop    context.CancelFunc
	done    sync.WaitGroup // the node's goroutines
	closing sync.Once
}

// Start opens the store and begins to serve. Gossip and the peer port are open before that, so that
// other nodes can be asked whether this region has another store. ctx bounds only the start.
func Start(ctx context.Context, c Config) (*Node, error) {
	n, err := New(c, Stepping{})
	if err != nil {
		return nil, err
	}
	n.server = peer.NewServer(n.handlers(), c.PeerTLS)
	n.server.Tell(n.log, n.CountPanic)
	n.metrics.watch(n)
	if err := n.tenure.TryRights(ctx); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	if err := n.startGossip(); err != nil {
		return nil, errors.Join(err, n.peers.Close())
	}
	// Serve ends when the server is closed.
	n.life.done.Go(func() { _ = n.server.Serve(c.PeerListener) })
	if err := n.open(ctx); err != nil {
		n.server.Close()
		err = errors.Join(err, n.gossip.Close(), n.peers.Close())
		n.life.done.Wait()
		return nil, err
	}
	n.run()
	return n, nil
}

// open opens the store, once gossip has called whom it is to call. Then it asks the other nodes of
// the region whether they have another store, before this node serves.
func (n *Node) open(ctx context.Context) error {
	joining, cancel := context.WithTimeout(ctx, firstCallsPatience)
	n.join(joining, false)
	cancel()
	if err := n.aloneWithItsName(ctx); err != nil {
		return err
	}
	if err := n.clockAgrees(ctx); err != nil {
		return err
	}
	if err := n.forgetTime(ctx); err != nil {
		return err
	}
	if err := n.timeAgrees(ctx); err != nil {
		return err
	}
	if err := n.tenure.NoNamesake(ctx); err != nil {
		return err
	}
	if err := n.tenure.Open(ctx); err != nil {
		return err
	}
	n.tenure.TellUse(ctx)
	close(n.life.opened)
	n.second.AskFirst(ctx)
	return ctx.Err()
}

// firstCallsPatience bounds the wait for gossip at the start. A node that can reach nobody starts
// all the same.
const firstCallsPatience = 5 * time.Second

// run starts the goroutines that run until the node is closed.
func (n *Node) run() {
	running, stop := context.WithCancel(context.Background())
	n.life.stop = stop
	for _, each := range []func(context.Context){n.limiter.Run, n.rights.Run, n.tenure.Watch,
		n.envoys.Run, n.tenure.KeepTime, n.tenure.TryRefused, n.housekeep, n.keepBooks, n.rights.CopyOut, n.readStore, n.second.Run,
		n.watchAhead} {
		n.life.done.Go(func() { each(running) })
	}
}

// Stepping says how a node is stepped by hand. The zero value is for a node that runs by itself.
type Stepping struct {
	// On is what decisions run on. nil: this process's clock and goroutines.
	On queue.Executor
	// Taken receives the events of the exchange machine. It replaces the goroutine that steps the
	// machine.
	Taken func(exchange.Event)
}

// Wings returns the node's three parts, for callers that step it by hand.
func (n *Node) Wings() (*tenure.Tenure, *rights.Engine, *admit.Limiter) {
	return n.tenure, n.rights, n.limiter
}

// New returns a node in which no goroutine runs and whose store is not open yet, for callers that
// step it by hand. Such a node does not use the parts of c that concern other nodes: listeners,
// addresses, dialer and keys.
func New(c Config, stepped Stepping) (*Node, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Exchange.Nodes = c.Nodes
	if c.Life == 0 {
		c.Life = rand.Uint64()
	}
	n := &Node{config: c, log: c.Log, started: c.Now(), elapsed: elapsedSince(c.Elapsed), life: life{closed: make(chan struct{}), opened: make(chan struct{})},
		peers: peer.NewClient(c.Dial, c.PeerTLS)}
	n.panics = door.NewPanics(c.Log, "", n.CountPanic)
	if c.Fetch == nil {
		c.Fetch, n.config.Fetch = n.fetch, n.fetch
	}
	var err error
	n.tenure, err = tenure.New(tenure.Config{Region: c.Region, Node: c.Node, Bootstrap: c.Bootstrap,
		Policy: c.Policy, Fetch: c.Fetch, Adopted: c.Adopted,
		Store: c.Store, Journal: c.Journal, Now: c.Now, Log: c.Log, Changed: n.changed,
		MayBegin: n.mayBegin, Panicked: n.panics.Recovered, Closed: n.life.closed,
		Seedless: len(c.Seeds) == 0,
		Knows:    func(node string) bool { return n.sees(c.Region+"/"+node, 0) },
		Named:    func(all map[string]quantity.StoreTime) { n.rights.Named(all) },
		Waits:    func() bool { return len(n.rights.Recovering()) > 0 },
		Waived:   func(until quantity.StoreTime) { n.rights.Waive(until) }})
	if err != nil {
		return nil, err
	}
	n.second = n.newSecond()
	if c.Alive == nil {
		c.Alive = n.sees
	}
	n.rights = rights.New(rights.Config{Region: c.Region, Node: c.Node, Address: c.PeerAdvertise, Options: c.Exchange, Life: c.Life, Alive: c.Alive,
		Memory: c.Memory, Store: c.Store,
		Journal: c.Journal, Tenure: n.tenure, Peers: n.others(), Unproven: c.Unproven, Broadcast: n.broadcast,
		Taken: stepped.Taken, Failpoint: c.Failpoint,
		Now: c.Now, Elapsed: n.elapsed, Log: c.Log, Closed: n.life.closed})
	n.limiter = admit.New(admit.Config{Region: c.Region, Node: c.Node, Nodes: c.Nodes,
		Wait: c.Wait, On: stepped.On,
		Store: c.Store, Journal: c.Journal, Tenure: n.tenure, Rights: n.rights, Now: c.Now,
		Elapsed: c.Elapsed, Log: c.Log, Closed: n.life.closed})
	n.Decisions = decisions{n.limiter, n.limiter.Receipts(), n.limiter.Queue()}
	n.envoys = envoys.New(envoys.Config{Node: c.Node, Nodes: c.Nodes, Rules: n.tenure,
		Rights: n.rights, Limiter: n.limiter, Now: c.Now, Elapsed: c.Elapsed})
	n.metrics = newMetrics(n)
	return n, nil
}

// changed passes on a change of the terms on which the store may be used.
func (n *Node) changed(c tenure.Change) {
	n.limiter.Changed(c)
	n.rights.Changed(c)
	n.envoys.Changed(c)
	n.second.Look()
}

// startGossip starts gossip and joins the other nodes.
func (n *Node) startGossip() error {
	meta, err := n.meta()
	if err != nil {
		return err
	}
	n.gossip, err = gossip.Start(gossip.Config{
		Name: n.config.Region + "/" + n.config.Node, Meta: meta,
		Packets: n.config.Packets, Streams: n.config.Streams, Dial: n.config.Dial,
		Advertise: n.config.Advertise,
		Seeds:     n.config.Seeds, Remembered: n.config.Journal.Peers(), Keys: n.config.GossipKeys,
		Admit: n.admit, MaxGroup: n.config.maxMembers(),
		State: n.rights.Hints(), Logger: n.log, Recovered: n.panics.Recovered,
		OnChange: n.membersChanged,
	})
	return err
}

// fetch asks another region for a limits document.
func (n *Node) fetch(ctx context.Context, region string, e policy.Epoch) ([]byte, error) {
	if n.config.Unproven {
		return nil, ErrUnproven
	}
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return n.peers.Document(limited, region,
		peer.Identity{Region: n.config.Region, Node: n.config.Node}, e.Digest)
}

// fetchTimeout bounds the wait for another region's document.
const fetchTimeout = 5 * time.Second

// broadcast gossips a hint.
func (n *Node) broadcast(name string, hint []byte) error { return n.gossip.Broadcast(name, hint) }

// housekeepEvery is how often a node drops what no longer counts.
const housekeepEvery = 10 * time.Second

// housekeep drops what no longer counts and checks the store's memory, until ctx ends.
func (n *Node) housekeep(ctx context.Context) {
	n.watchEviction(ctx, time.Now())
	repeat.Every(ctx, housekeepEvery, func(now time.Time) {
		n.watchEviction(ctx, now)
		// This drops the addresses that answered once but no longer do.
		n.membersChanged(n.gossip.Members())
		n.rights.WatchMemory()
		if err := n.config.Journal.RememberPeers(n.gossip.Remembered()); err != nil {
			n.log.Error("the journal cannot remember peers", "err", err)
		}
		n.Forget(now)
	})
}

// Forget drops from memory and journal what no longer counts at a time.
func (n *Node) Forget(now time.Time) {
	n.rights.Forget(now)
	n.limiter.Forget(now)
	n.prune()
}

const (
	bookEvery       = 200 * time.Millisecond
	checkpointEvery = time.Second / 2
)

// keepBooks writes checkpoints of use to the journal, and charges in the store what was admitted
// without it, until ctx ends.
func (n *Node) keepBooks(ctx context.Context) {
	written := time.Now()
	repeat.Every(ctx, bookEvery, func(now time.Time) {
		n.books.Lock()
		n.limiter.Local().Book(ctx)
		// If the disk is slow, ticks are lost.
		if now.Sub(written) >= checkpointEvery-bookEvery/2 {
			written = now
			n.rights.Checkpoint(ctx, false)
		}
		n.books.Unlock()
	})
}

// readStore reads what the store has of long windows as long as the journal is not whole, until ctx ends.
func (n *Node) readStore(ctx context.Context) {
	repeat.Every(ctx, rights.ReadEvery, func(time.Time) { n.rights.ReadOn(ctx) })
}

// Ready returns why the node should not get requests, or nil if it should. A node serves as soon as
// its store is open, and refuses everything before that. Regions that do not answer only degrade
// it. It should not get any while windows stand still.
func (n *Node) Ready() error {
	if err := n.tenure.Ready(); err != nil {
		return err
	}
	return n.aheads.ready()
}

// Close ends the node at once. Call Leave first, so that the others need not wait for it.
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

// SetGossipKeys replaces the keys of gossip: the first encrypts, each may decrypt. It fails and
// changes nothing if the node was started without keys, or if keys is empty.
func (n *Node) SetGossipKeys(keys [][]byte) error { return n.gossip.SetKeys(keys) }

// Leave tells the other nodes that this node ends.
func (n *Node) Leave(ctx context.Context) error { return n.gossip.Leave(ctx) }

// sees reports whether gossip sees a life of a node, named REGION/NODE; 0: any life. A node that does not tell its
// life may have any.
func (n *Node) sees(name string, life uint64) bool {
	for _, m := range n.gossip.Members() {
		is, err := memberOf(m)
		if err == nil && m.Name == name && (life == 0 || is.life == 0 || is.life == life) {
			return true
		}
	}
	return false
}

// Members returns the names of the nodes that gossip sees alive.
func (n *Node) Members() []string {
	var names []string
	for _, m := range n.gossip.Members() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}
