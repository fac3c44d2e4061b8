package rights

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
)

// Peers are the other nodes, as [peer.Client] calls them.
type Peers interface {
	// Exchange sends a message to one node of a region.
	Exchange(ctx context.Context, region string, m exchange.Message) (exchange.Reply, error)
	// Recall asks one node of a region what it remembers.
	Recall(ctx context.Context, region string, q exchange.Question) (exchange.Testimonies, error)
	// RecallAll asks all nodes of a region, and passes on each answer.
	// It returns how many were asked.
	RecallAll(ctx context.Context, region string, q exchange.Question, take func(exchange.Testimonies)) (asked int)
	// Nodes returns the addresses of a region's other nodes.
	Nodes(region string) []string
	// Copy tells the node at an address a part of what this one has seen, and returns the number of the
	// part that it takes next.
	Copy(ctx context.Context, region, address string, p copies.Part) (next uint64, err error)
}

var _ Peers = (*peer.Client)(nil)

// Config is everything that an engine needs.
type Config struct {
	Region, Node string
	Address      string // at which other nodes reach this one
	Options      exchange.Options
	Memory       Memory
	Store        *store.Store
	Journal      *journal.Journal
	Tenure       *tenure.Tenure
	Peers        Peers
	Unproven     bool // nothing is taken from other regions
	// Broadcast gossips a hint under a name. A newer hint takes the place of an older one of the
	// same name. Broadcast does not wait.
	Broadcast func(name string, hint []byte) error
	// Life tells this start of the node from others.
	Life uint64
	// Alive reports whether gossip sees a life of a node, named REGION/NODE; 0: any life.
	Alive func(name string, life uint64) bool
	// Taken, if set, gets the events in place of the engine's own queue. It is for tests that step
	// the machine by hand.
	Taken func(exchange.Event)
	// Failpoint, if set, is called at points of the protocol at which a test may have the node die.
	Failpoint func(Point)
	Now       func() time.Time     // the node's wall clock
	Elapsed   func() time.Duration // the time since any one moment, by a clock that is never set
	Log       *slog.Logger
	Closed    <-chan struct{} // closed when the node ends
}

// Engine carries out the effects of a node's exchange machine, and has what the machine knew when it
// was last stepped. Its Stepper steps the machine; effects run in other goroutines and come back as
// events. It is safe for concurrent use.
type Engine struct {
	config Config
	begun  time.Time
	events *events
	drain  chan struct{} // holds a value after something was observed
	moves  chan struct{} // holds a value for each pipeline under way that moves rights
	seen   *lastSeen
	hints  *Hints

	sender    *copies.Sender
	written   chan struct{} // holds a value after uses were written to the journal
	telling   telling
	receiver  copies.Receiver // of this region's other nodes
	others    copies.Receiver // of nodes of other regions
	reading   reading
	gone      gone
	toldAlone atomic.Int64 // store time of the last report of a lone region
	mu        sync.Mutex
	observed  map[string]*exchange.Observed // since the last drain, by bucket id
	ages      []exchange.PeerAge            // as of the last tick, answer or change of tenure
	stats     exchange.Stats                // as of the last step
	movedBy   map[string]exchange.Moved     // as of the last tick, by limit
	waiting   []exchange.Recovering         // as of the last tick
	// allotments, by bucket id, as of the last tick
	allotments map[string]quantity.Units
	reliefs    reliefs

	storeAhead int64 // store time less the machine's time, microseconds, as of the last step
	storeTold  bool  // storeAhead is known

	degraded atomic.Pointer[map[string]bool] // regions that this node is degraded towards

	// Replies to peers' messages, and testimonies for questions, that are being served.
	replies     pendingReplies[exchange.Reply]
	testimonies pendingReplies[exchange.Testimonies]
	waiters     waiters
	work        sync.WaitGroup // effects under way
}

// New returns an engine that does nothing before Run.
func New(c Config) *Engine {
	e := &Engine{config: c, begun: time.Now(), events: newEvents(), drain: make(chan struct{}, 1),
		moves: make(chan struct{}, movesUnderWay), written: make(chan struct{}, 1),
		seen:     newLastSeen(c.Region, c.Memory, c.Store.Latest, c.Store.Surely),
		observed: map[string]*exchange.Observed{}}
	e.hints = newHints(c.Region, c.Node, c.Journal.Incarnation(), c.Now,
		func(h exchange.Hint) { e.post(exchange.Heard{Hint: h}) })
	e.hints.inDocument = func(region string) bool {
		return region == c.Region || slices.Contains(c.Tenure.Rules().Peers, region)
	}
	e.degraded.Store(&map[string]bool{})
	e.sender = e.newSender()
	return e
}

// Changed takes in another tenure: another generation of the store, or another document.
func (e *Engine) Changed(c tenure.Change) {
	if c.Unused {
		e.seen.since.Store(0)
	}
	e.seen.noteTenure(c.Generation, c.Now, c.Anew)
	_, lostAt := e.config.Store.Lost()
	e.deliver(exchange.TenureChanged{Generation: c.Generation, Epoch: c.Rules.Epoch,
		Peers: c.Rules.Peers, Clock: quantity.StoreTime(e.config.Now().UnixMicro()), LostAt: lostAt})
	e.Settle(exchange.Settled{Bucket: Reopened, RetryHelps: true})
	e.recallNames()
}

// now returns the machine's time: microseconds, above zero, of a clock that never goes back.
func (e *Engine) now() quantity.NodeTime {
	return quantity.NodeTime(time.Since(e.begun).Microseconds() + 1)
}

// post hands the machine an event. If its lane is full, post drops and counts the event and returns
// false.
func (e *Engine) post(event exchange.Event) bool {
	if e.config.Taken != nil {
		e.config.Taken(event)
		return true
	}
	return e.events.post(event)
}

// deliver hands the machine an event that must not be lost, such as the result of an effect. It
// waits for room.
func (e *Engine) deliver(event exchange.Event) {
	if e.config.Taken != nil {
		e.config.Taken(event)
		return
	}
	e.events.deliver(event, e.config.Closed)
}

// Snapshot returns the ages of peers and the counts as of the last step.
func (e *Engine) Snapshot() (ages []exchange.PeerAge, stats exchange.Stats, dropped int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ages, e.stats, e.events.lost()
}

// broadcast gossips a hint.
func (e *Engine) broadcast(h exchange.Hint) {
	b, err := e.hints.Publish(h)
	if err == nil {
		err = e.config.Broadcast(hintKey{h.Region, h.Node, h.Bucket}.gossiped(), b)
	}
	if err != nil {
		e.config.Log.Debug("hint not sent", "err", err)
	}
}

// Exists notes that a bucket is about to be used, whatever the outcome of the call. It returns the
// store time until which the bucket is known to be in the store.
func (e *Engine) Exists(b *exchange.Bucket) (until quantity.StoreTime) { return e.seen.begin(b) }

// ExistsUntil returns the store time until which a bucket is known to be in the store.
func (e *Engine) ExistsUntil(id string) quantity.StoreTime { return e.seen.known(id) }

// UsedBefore reports whether this node may have used a bucket before a loss. generation is the store's
// generation under which the node heard of the loss.
func (e *Engine) UsedBefore(id string, generation uint64) bool {
	return e.seen.usedBefore(id, generation)
}

// Hints returns the state that gossip spreads for this node.
func (e *Engine) Hints() *Hints { return e.hints }

// Forget drops hints that are too old by the node's clock, and remembered buckets that no longer
// count by the store's.
func (e *Engine) Forget(now time.Time) {
	e.hints.Forget(now)
	e.seen.forget()
}

// Numbers are the engine's counts for an operator.
type Numbers struct {
	Waiting map[string]int   // events that wait, by lane
	Dropped map[string]int64 // events dropped, by lane
	Seen    SeenNumbers
	Read    int64 // keys of the store that were read because the journal is not whole
	// Copies is how many other nodes have a copy, at most two seconds old, of what this one has seen.
	// CopiedAnew is how often one was told all anew because too much waited for it.
	Copies     int
	CopiedAnew int64
}

// SeenNumbers counts the buckets that a node remembers to have used, those of which it remembers
// how much (Uses), and those whose latest use is not in the journal yet (Unwritten).
type SeenNumbers struct {
	Buckets, Uses, Unwritten int
	Untracked                int64 // calls on buckets that could not be remembered for want of room
}

// MovedByLimit returns the units that this node has moved since its start, by limit, as of the last
// tick.
func (e *Engine) MovedByLimit() map[string]exchange.Moved {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.movedBy
}

// Recovering returns the limits with buckets that wait for what others know of a loss, by name, as of
// the last tick.
func (e *Engine) Recovering() []exchange.Recovering {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting
}

// Named notes the nodes that the store has answered; see exchange.Named.
func (e *Engine) Named(all map[string]quantity.StoreTime) {
	_, lostAt := e.config.Store.Lost()
	e.deliver(exchange.Named{At: all, LostAt: lostAt})
}

// Waive takes the operator's word about all losses up to a store time; see exchange.Waived.
func (e *Engine) Waive(until quantity.StoreTime) { e.deliver(exchange.Waived{Until: until}) }

// Numbers returns the engine's counts as of now.
func (e *Engine) Numbers() Numbers {
	n := Numbers{Waiting: map[string]int{}, Dropped: map[string]int64{}}
	for l := range lanes {
		n.Waiting[l.String()] = e.events.length(l)
		if l != resultLane { // of this lane no event is dropped
			n.Dropped[l.String()] = e.events.dropped[l].Load()
		}
	}
	n.Seen.Buckets, n.Seen.Uses, n.Seen.Unwritten = e.seen.counts()
	n.Seen.Untracked, n.Read = e.seen.untracked.Load(), e.reading.read.Load()
	n.Copies, n.CopiedAnew = e.sender.Numbers(e.config.Store.Latest())
	return n
}
