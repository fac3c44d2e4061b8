package exchange

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

const (
	// Interval is the time between ticks that the plan counts on.
	Interval = allocator.Interval
	// MaxBuckets bounds the buckets that a node plans for. Of further buckets it admits only the
	// entitlement. A tick plans all buckets in view, at about 2 us each.
	MaxBuckets = 20_000
	// MaxAsks bounds the asks in one message.
	MaxAsks = 256
)

// Machine is the protocol of one node. It is deterministic: the same events at the same times give
// the same effects. It is not safe for concurrent use.
type Machine struct {
	region, node    string
	generation      uint64
	epoch           string
	peers           []*peer
	views           map[string]*view
	order           []*view            // the views, sorted by bucket id
	mates           map[string]*voices // by bucket, what the other nodes of this region say
	serving         map[uint64]*serving
	calls           map[uint64]*call
	deferredCredits []deferredCredit
	lastCall        uint64
	nodes           int    // how many nodes this region has, by configuration
	fence           uint64 // no row of a lower generation leaves this node
	recoveries      map[string]*recovery
	recovering      []string           // ids of recoveries, sorted
	named           map[string]named   // the nodes of our region that the store answered
	namedLost       quantity.StoreTime // when the store last lost data, as far as named knows
	namesRead       quantity.StoreTime // all nodes that the store had answered by then are named
	shown           quantity.StoreTime // the latest time that the store has told
	waived          quantity.StoreTime // of losses up to then nobody waits for what nobody can tell
	lostAt          quantity.StoreTime // see TenureChanged
	offset          int64              // store time less node time, by the store's last answer
	nodeClock       int64              // the node's own clock less node time, as the driver last told it
	clockKnown      bool               // the store's time was seen at least once, so offset holds
	noHints         bool
	noAdvance       bool
	noLending       bool
	noBurst         bool
	noTail          bool
	noLarge         bool
	// A row could not be made durable: this node lends nothing until it is started anew.
	journalFailed bool
	serves        *peer // the peer whose queue takeTurns works on; nil: none
	stats         Stats
	movedBy       map[string]Moved // by the name of the limit
	out           Effects

	// Memory for plans, used again by the next one so that a plan allocates nothing.
	demanders []allocator.Demander
	offered   []allocator.Offer
	rates     []quantity.MilliRate
	scratch   allocator.Scratch
}

// Options switch parts of the protocol off, so that tests can show what each part is good for. The
// zero value is the whole protocol, for a region of one node.
type Options struct {
	WithoutHints   bool // no hint is published or believed
	WithoutAdvance bool // nothing is asked for the next cell
	WithoutLending bool // every ask is refused
	WithoutBurst   bool // no burst rights are asked for
	// WithoutTail: nothing is done for the tail of a long cell. Asks go only to peers thought to
	// have something, and a lender keeps its last units of the cell.
	WithoutTail bool
	// WithoutLarge: a large cost counts as other denied units do, and nothing is kept for it.
	WithoutLarge bool
	Nodes        int // how many nodes this region has, by configuration; 0: 1
}

// Stats counts what a machine has done.
type Stats struct {
	Asks        int64 // asks sent
	AsksRefused int64 // asks answered without a unit
	Moved             // of all limits, from and to all peers
	Unanswered  int64 // calls without an answer
	// Dropped counts asks put off because too many calls were under way. Their buckets wait for
	// their turn.
	Dropped  int64
	Refusals int64 // asks of peers that this node refused
	// RefusedByPeers counts by Refusal the asks of this node that peers refused, RefusedHere the
	// asks of peers that this node refused.
	RefusedByPeers [refusals]int64
	RefusedHere    [refusals]int64
	// RowsRejected counts by Rejection the rows that peers announced and this node did not credit.
	RowsRejected [rejections]int64
	// DeniedWithSpare is how many units were denied here although peers had said that they could
	// spare some of the cell. Each report of decisions counts at most as many units as they said.
	DeniedWithSpare quantity.Units
	// GenerationsRefused counts messages that name a generation further ahead of the clock than any
	// honest one.
	GenerationsRefused int64
	// Fenced says that this node lends nothing because another node of its region named a later
	// generation than this node's.
	Fenced         bool
	Implausible    int64 // messages that no honest region sends
	HintsPublished int64
	Buckets        int64 // buckets in view
	Recovered      int64 // buckets restored after a loss
	Recovering     int64 // buckets whose recovery is under way or not complete
	PartlyKnown    int64 // those of Recovering that are restored, but not completely known
	NamesDropped   int64 // nodes of our region that were not remembered for want of room
	JournalFailed  bool  // this node lends nothing until it is started anew
}

// New returns the machine of a node. The machine does nothing useful until it hears TenureChanged.
func New(region, node string, o Options) *Machine {
	return &Machine{
		region: region, node: node,
		noHints: o.WithoutHints, noAdvance: o.WithoutAdvance, noLending: o.WithoutLending,
		noBurst: o.WithoutBurst, noTail: o.WithoutTail, noLarge: o.WithoutLarge, nodes: max(o.Nodes, 1),
		recoveries: map[string]*recovery{}, named: map[string]named{},
		views: map[string]*view{}, mates: map[string]*voices{}, serving: map[uint64]*serving{},
		calls: map[uint64]*call{}, movedBy: map[string]Moved{},
	}
}

// Step tells the machine an event and returns what the driver must do. now is the node's time of
// the event: microseconds above zero of a clock that never goes back.
func (m *Machine) Step(now quantity.NodeTime, event Event) Effects {
	m.out = Effects{}
	event.happen(m, now)
	m.takeTurns(now)
	m.creditDeferred(now)
	m.stampReplies(now)
	return m.out
}

// Stats returns what the machine has done so far.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Buckets = int64(len(m.views))
	s.Recovering = int64(len(m.recoveries))
	s.JournalFailed = m.journalFailed
	s.Fenced = m.fence > m.generation
	return s
}

// Recovering is a limit with buckets for which this node waits until others tell what they know.
type Recovering struct {
	Limit string
	// Buckets counts those that wait for a first answer, and those that are restored as far as is
	// known.
	Buckets int
	Since   quantity.StoreTime // when the first of them was lost
	Units   quantity.Units     // the most that the region is entitled to of one of them
}

// Recovering returns the limits with buckets that wait, by name.
func (m *Machine) Recovering() (all []Recovering) {
	of := map[string]int{}
	for _, r := range m.recoveries {
		if !r.bucket.Recovered {
			continue
		}
		i, known := of[r.bucket.Name]
		if !known {
			i, of[r.bucket.Name] = len(all), len(all)
			all = append(all, Recovering{Limit: r.bucket.Name, Since: r.lostAt})
		}
		all[i].Buckets++
		all[i].Since = min(all[i].Since, r.lostAt)
		all[i].Units = max(all[i].Units, r.bucket.Entitlements[m.region])
	}
	slices.SortFunc(all, func(a, b Recovering) int { return cmp.Compare(a.Limit, b.Limit) })
	return all
}

// PeerAge says how old the last news of a peer is, and what this node knows of the connection.
// Times are microseconds.
type PeerAge struct {
	Peer      string
	Heard     bool  // false: the peer never answered
	Age       int64 // since the latest call that it answered was sent; 0 if not Heard
	RoundTrip int64
	Degraded  bool
	// ClockApart is how far the peer's store clock is ahead of ours, by the quickest answer of the
	// last 30 to 60 s. It is wrong by at most half of that answer's round trip. It means nothing
	// unless ClockKnown.
	ClockApart int64
	ClockKnown bool
	Moved      Moved
}

// Ages returns the age of every peer's last answer, in the document's order.
func (m *Machine) Ages(now quantity.NodeTime) []PeerAge {
	ages := make([]PeerAge, len(m.peers))
	for i, p := range m.peers {
		ages[i] = PeerAge{Peer: p.name, Heard: p.heard, RoundTrip: p.roundTrip,
			Degraded: p.degraded(now), Moved: p.moved}
		if p.heard {
			ages[i].Age = now.Sub(p.answered)
		}
		ages[i].ClockApart, ages[i].ClockKnown = p.clock.apart(now)
	}
	return ages
}

// onTenureChanged takes over a generation, an epoch and the peers of its document. It keeps the
// peers that stay.
func (m *Machine) onTenureChanged(now quantity.NodeTime, e TenureChanged) {
	if e.Generation != m.generation { // otherwise the store still has the rows in the views
		clear(m.views)
		m.order, m.deferredCredits = nil, nil
		clear(m.recoveries)
		m.recovering = nil
		m.stats.PartlyKnown = 0
		for _, p := range m.peers {
			p.queue = queue{}
		}
		clear(m.serving)
	}
	m.generation, m.epoch, m.lostAt = e.Generation, e.Epoch, e.LostAt
	m.noteClock(now, e.Clock)
	peers := make([]*peer, 0, len(e.Peers))
	for _, name := range e.Peers {
		if p := m.peer(name); p != nil {
			peers = append(peers, p)
		} else {
			peers = append(peers, &peer{name: name})
		}
	}
	for i, p := range peers {
		p.index = i
	}
	m.peers = peers
	for _, v := range m.views {
		v.setPeers(m.peers)
	}
}

func (m *Machine) peer(name string) *peer {
	for _, p := range m.peers {
		if p.name == name {
			return p
		}
	}
	return nil
}

// onTick samples demand, plans, publishes hints, pings peers and forgets what is idle.
func (m *Machine) onTick(now quantity.NodeTime, e Tick) {
	m.noteClock(now, e.Clock)
	m.forgetIdle(now)
	m.forgetMates(now)
	m.continueRecoveries(now)
	for _, v := range m.order {
		m.flows(now, v)
		v.sample(now)
		// Otherwise the view has the terms of an older document. It waits until the bucket is used
		// under this one.
		if v.Epoch == m.epoch {
			m.plan(now, v, e.Jitter)
			m.publish(now, v)
			m.allot(now, v)
			if v.inNeed(now) {
				m.relieve(now, v)
			}
		}
		v.asked, v.sampled = allocator.Requests{}, now
		if now >= v.wantedUntil {
			v.wanted = 0
		}
	}
	for _, p := range m.peers {
		if (e.News || now.Sub(p.called) >= m.pingEvery(p)-Interval/2) && p.underway < MaxCalls {
			m.call(now, p)
		}
	}
}

// forgetIdle drops the views of buckets that nobody uses or asks about. It keeps views whose moved
// rights still count, unless more than half of MaxBuckets are in view.
func (m *Machine) forgetIdle(now quantity.NodeTime) {
	m.order = slices.DeleteFunc(m.order, func(v *view) bool {
		idle := now.Sub(v.active) > idleAfter && (len(m.views) > MaxBuckets/2 ||
			!v.hasMoved(v.Cells().At(m.storeTime(now))))
		if idle {
			delete(m.views, v.ID)
		}
		return idle
	})
}

// view returns what is known of a bucket. It makes a new view if there is none, or returns nil if
// MaxBuckets are in view.
func (m *Machine) view(now quantity.NodeTime, b *Bucket) *view {
	v := m.views[b.ID]
	if v == nil {
		if len(m.views) >= MaxBuckets {
			return nil
		}
		v = &view{Bucket: b, self: m.region, sampled: now, mates: m.mates[b.ID]}
		v.setPeers(m.peers)
		f := v.entitlement()
		v.state = algorithms.State{Cell: b.Cells().At(m.storeTime(now)),
			Entitlement: f, Share: f, NextShare: f, Free: f}
		if v.frame.Bucket {
			v.state.Free = v.own.Burst
		}
		m.views[b.ID] = v
		at, _ := slices.BinarySearchFunc(m.order, b.ID,
			func(v *view, id string) int { return strings.Compare(v.ID, id) })
		m.order = slices.Insert(m.order, at, v)
	}
	old := v.Bucket
	if v.Bucket = b; old.Epoch != b.Epoch || old.Agreed != b.Agreed {
		v.lookUpParts()
	}
	v.active = now
	return v
}

// onObserved takes in decisions, and plans at once if the share is about to run out.
func (m *Machine) onObserved(now quantity.NodeTime, e Observed) {
	if e.Now > 0 {
		m.noteStoreTime(e.Now, now)
	}
	v := m.view(now, e.Bucket)
	if v == nil {
		return
	}
	if e.Flow.Told {
		v.flow.tell(now, e.Flow)
	}
	if e.Now == 0 {
		return
	}
	v.observe(e.State, e.Now)
	if e.Asked {
		v.owing.until = max(v.owing.until, v.Cells().At(e.Now)+2)
	}
	r := e.Requests
	if m.noLarge {
		r = allocator.Requests{Admitted: r.Admitted, Denied: r.Denied, Capped: r.Capped}
	}
	v.asked.Add(r)
	v.deniedLarge(now, e.Large, e.Admitted)
	if e.Denied > 0 {
		v.lacks.denied(now, v.deniedAt)
		v.deniedAt = now
		m.stats.DeniedWithSpare += min(e.Denied, m.saidSpare(now, v))
	}
	m.planInNeed(now, v)
	if e.Denied > 0 {
		m.relieve(now, v)
	}
	if e.State.Doubt > 0 {
		m.recoverDoubted(now, e.Bucket, e.State)
	}
}

// farthest returns the longest round trip to any peer that is to be expected, in microseconds.
func (m *Machine) farthest() int64 {
	farthest := int64(0)
	for _, p := range m.peers {
		farthest = max(farthest, p.expected())
	}
	return farthest
}

// grace returns the time, in microseconds, within which this region could get back rights that it
// has lent.
func (m *Machine) grace() int64 { return allocator.Grace(m.farthest()) }
