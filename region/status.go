package region

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/second"
)

// Status describes a node and what it knows of the others.
type Status struct {
	Region     string
	Node       string
	Epoch      string
	Version    int64 // of the policy document in force
	Generation uint64
	NotReady   error
	Unproven   bool // see Config.Unproven
	Peers      []Peer
	Members    []string // nodes that gossip sees alive, including this one
	Mates      []string // those of Members that are other nodes of this region
	Store      StoreStatus
	Journal    JournalStatus
	Local      local.Status
	Closed     []admit.Closed // limits with buckets that are closed after a loss
	Documents  tenure.Documents
	// Recovering has the limits with buckets that wait for what others know of a loss, by name.
	Recovering []Recovering
	// Exchange counts the exchange of rights. Its Recovering and PartlyKnown show how far a
	// recovery is.
	Exchange  exchange.Stats
	Dropped   int64 // events lost because a queue was full
	HintsLost int64 // hints not kept because there were too many
}

// Recovering is a limit with buckets that wait for what others know of a loss.
type Recovering struct {
	Limit   string
	Buckets int            // that requests asked this node for
	Since   time.Time      // when the first of them was lost, by the store's clock
	Units   quantity.Units // the most that the region is entitled to of one of them
}

// Recovering returns the limits with buckets that wait for what others know of a loss, by name.
func (n *Node) Recovering() (all []Recovering) {
	for _, r := range n.rights.Recovering() {
		all = append(all, Recovering{r.Limit, r.Buckets, time.UnixMicro(int64(r.Since)), r.Units})
	}
	return all
}

// Peer is another region as this node sees it.
type Peer struct {
	Region     string
	Heard      bool          // whether it ever answered
	Age        time.Duration // since the last call that it answered was sent
	RoundTrip  time.Duration
	Degraded   bool
	ClockKnown bool
	// ClockApart is how far the peer's store clock is ahead of ours, wrong by at most half a round
	// trip. It is valid if ClockKnown is true.
	ClockApart time.Duration
	Moved      exchange.Moved
}

// StoreStatus is the region's store as this node sees it.
type StoreStatus struct {
	Kind    string // standalone, sentinel or cluster
	Address string // without user and password
	Data    []string
	// LastLoss is when data was last lost, by the store's clock. Zero: the store knows of no loss.
	LastLoss time.Time
	Losses   int64 // losses that this node found since its start
	// OutOfReach lists the shards whose requests are decided without the store, because their
	// server does not answer.
	OutOfReach []string
	// Refusing lists the kinds of errors with which the servers refuse calls.
	Refusing   []tenure.Refusal
	Eviction   string // maxmemory-policy; empty: not known
	ClockKnown bool
	// ClockApart is how far the store's clock is ahead of this node's, to some 10 ms. It is valid
	// if ClockKnown is true.
	ClockApart time.Duration
	ID         string // which store it is: see store.Origin; empty: not opened
	// Stopped is why this node stopped using the store; nil: it uses it.
	Stopped error
	Rivals  []second.Rival // nodes of this region with another store
	Stops   int64          // how often this node stopped using the store since its start
	Nodes   int            // the region's number of nodes by configuration
}

// JournalStatus describes the node's journal.
type JournalStatus struct {
	Incarnation uint64 // how often it has been opened
	Sequence    uint64 // number of the last commit
	Rows        uint64
	Checkpoints uint64
	Whole       bool      // since some time it holds every row that this node announced
	WholeSince  time.Time // that time; zero: from the beginning
	Failed      bool      // nothing is lent until the node starts anew
}

// Status returns the present state of the node.
func (n *Node) Status() Status {
	ages, stats, dropped := n.rights.Snapshot()
	r := n.tenure.Rules()
	s := Status{Region: n.config.Region, Node: n.config.Node, Epoch: r.Epoch,
		Version:    r.Document.Version,
		Generation: n.tenure.Generation(), NotReady: n.Ready(), Unproven: n.config.Unproven, Members: n.Members(),
		Exchange: stats, Dropped: dropped,
		HintsLost: n.rights.Hints().Lost(), Store: n.storeStatus(),
		Journal: journalStatus(n.config.Journal), Local: n.limiter.Local().Status(),
		Closed:     n.limiter.Closed(),
		Recovering: n.Recovering(),
		Documents:  n.tenure.Documents()}
	for _, m := range s.Members {
		if region, node, _ := strings.Cut(m, "/"); region == n.config.Region &&
			node != n.config.Node {
			s.Mates = append(s.Mates, m)
		}
	}
	for _, a := range ages {
		s.Peers = append(s.Peers, Peer{Region: a.Peer, Heard: a.Heard, Age: quantity.Duration(a.Age),
			RoundTrip: quantity.Duration(a.RoundTrip), Degraded: a.Degraded, ClockKnown: a.ClockKnown,
			ClockApart: quantity.Duration(a.ClockApart), Moved: a.Moved})
	}
	return s
}

func (n *Node) storeStatus() StoreStatus {
	at := n.config.Store.Address()
	s := StoreStatus{Kind: at.Kind(), Address: at.String(), Data: n.config.Store.Data(),
		Losses: n.tenure.Losses(), Eviction: n.memory.policy(),
		Refusing: n.tenure.Refusing()}
	s.ID, s.Nodes = n.config.Store.Origin().ID, max(n.config.Nodes, 1)
	if stopped := n.tenure.Stopped(); stopped != nil {
		s.Stopped = stopped
	}
	found := n.second.Status()
	s.Rivals, s.Stops = found.Rivals, found.Stops
	if lost := n.tenure.LostAt(); lost != 0 {
		s.LastLoss = time.UnixMicro(int64(lost))
	}
	for shard, out := range n.limiter.Queue().OutOfReach() {
		if out {
			s.OutOfReach = append(s.OutOfReach, shardName(shard))
		}
	}
	slices.Sort(s.OutOfReach)
	s.ClockApart, s.ClockKnown = n.rights.StoreClock(time.Now())
	return s
}

// shardName returns a shard's name without its braces.
func shardName(s store.Shard) string { return strings.Trim(string(s), "{}") }

func journalStatus(j *journal.Journal) JournalStatus {
	stats, since := j.Stats(), j.WholeSince()
	s := JournalStatus{Incarnation: j.Incarnation(), Sequence: stats.Sequence, Rows: stats.Rows,
		Checkpoints: stats.Checkpoints,
		Whole:       since != math.MaxInt64, Failed: stats.Failed}
	if s.Whole && since != 0 {
		s.WholeSince = time.UnixMicro(int64(since))
	}
	return s
}

// Bucket is the ledger of one bucket in this region.
type Bucket struct {
	Limit     *policy.Limit
	Terms     algorithms.Terms // for this region
	Inspected algorithms.Inspected
	// ClosedUntil is when a bucket that is closed after a loss is opened again, by the node's
	// clock; zero: it is open.
	ClosedUntil time.Time
}

// Bucket reads the ledger of the bucket of a limit and descriptors.
func (n *Node) Bucket(ctx context.Context, limit, domain string,
	descriptors map[string]string) (Bucket, error) {
	if err := (admit.Request{Domain: domain, Descriptors: descriptors,
		Cost: 1}).Validate(); err != nil {
		return Bucket{}, err
	}
	r := n.tenure.Rules()
	l, b, err := r.Locate(limit, domain, descriptors)
	if err != nil {
		return Bucket{}, err
	}
	t := b.Terms(r.Region)
	found, err := n.config.Store.Inspect(ctx,
		algorithms.Inspect{Fence: algorithms.Fence{Epoch: r.Epoch}, Target: r.Target(b, 0)})
	return Bucket{Limit: l, Terms: t, Inspected: found, ClosedUntil: n.closedUntil(found)}, err
}

// closedUntil returns until when a bucket is closed after a loss, or the zero time.
func (n *Node) closedUntil(found algorithms.Inspected) time.Time {
	if found.Shut <= found.Now {
		return time.Time{}
	}
	return n.byOwnClock(time.UnixMicro(int64(found.Shut)))
}
