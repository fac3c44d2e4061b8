package assign

import (
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Times are node time, lengths of time microseconds, rates tokens a second.
const (
	second = allocator.Second
	// Late is the time within which an Envoy takes a message that was sent to it.
	Late = second
	// ReportEvery is the time between an Envoy's reports.
	ReportEvery = 5 * second
	// silentAfter is when an Envoy counts as paused: two reports are missing.
	silentAfter = 11 * second
	// planEvery is how often a bucket is planned, if nothing happens.
	planEvery = second
	// MaxShares bounds the pairs of a stream and a bucket id. Nothing is assigned to further pairs.
	MaxShares = 200_000
)

// Bucket is what the document in force says of one bucket.
type Bucket struct {
	ID     string
	Store  string // whose clock it goes by, one of few; the empty one is one, too
	Window int64  // of the limit: rights are units in a window
	Cells  algorithms.Cells
	// Counted says that it is a fixed window: rights are units that are spent in a cell, which is a
	// window, and not a rate.
	Counted bool
	TTL     int64 // seconds, the longest time to live of an assignment
	// Entitlement is this region's, Burst its part of max_burst.
	Entitlement, Burst quantity.Units
}

// Stream identifies an Envoy's stream. Later streams have larger numbers.
type Stream uint64

// Report is what an Envoy says of one bucket id.
type Report struct {
	Key             string    // of the bucket id: different for different ids
	Buckets         []*Bucket // which requests with this id are charged to, at least one
	Allowed, Denied quantity.Units
	// Elapsed is how many whole seconds have passed at the Envoy since its last report of the id, rounded
	// down; 0 in the first one.
	Elapsed int64
}

// Effects are the work that a Tick asks for. The order within each list is that of its doing; the
// lists may be done in any order.
type Effects struct {
	Holds   []Hold
	Charges []Charge
	Sends   []Send
	// Demands is what Envoys admit and deny of each bucket that was planned.
	Demands []Demand
}

// Hold asks the store for rights of a cell, or gives some back. Both numbers are sums that only
// rise: what the node has ever held of the cell, and what it has ever returned of that.
type Hold struct {
	Bucket         string
	Cell           quantity.Cell
	Known          quantity.Units // what the node knows that it held
	Held, Returned quantity.Units // to reach
	// Kept is what the store keeps of the cell: bursts are paid from it, and callers that are no
	// Envoys get some.
	Kept quantity.Units
}

// Held is the store's answer to a Hold.
type Held struct {
	Bucket         string
	Cell           quantity.Cell
	Failed         bool               // nothing is known of the call, or the store refused it
	Lost           bool               // the store forgot what was held: all of it counts as used
	Asked          quantity.NodeTime  // when the store was asked
	At             quantity.StoreTime // when it answered; 0: not known
	Held, Returned quantity.Units     // as they stand
}

// Charge asks the store for tokens, all or none.
type Charge struct {
	Bucket string
	Units  quantity.Units
}

// Send is an assignment for an Envoy. The driver says what became of it: see [Machine.Sent] and
// [Machine.Unsent].
type Send struct {
	Stream Stream
	Key    string
	Rate   int64          // tokens a second, at least 1
	Burst  quantity.Units // at least 1
	TTL    int64          // seconds, at least 1
}

// Demand is what Envoys admit and deny of a bucket, by their last reports. Admitted includes what
// they need beyond that because requests come unevenly. It is told at least every planEvery.
type Demand struct {
	Bucket           string
	Admitted, Denied quantity.MilliRate
}

// Machine is the assigner of one node. The same events at the same times give the same effects. It
// is not safe for concurrent use.
type Machine struct {
	nodes   quantity.Units // how many nodes the region has, by configuration
	pools   map[string]*pool
	seen    map[string]*sight // by store
	order   []*pool           // the pools, sorted by bucket id
	streams map[Stream]map[string]*share
	shares  int // of streams that have not ended
	drains  bool
	stats   Stats
	out     Effects

	wants []wanted // memory for plans
}

// New returns the machine of a node of a region with so many nodes.
func New(nodes int) *Machine {
	return &Machine{nodes: quantity.Units(max(nodes, 1)), pools: map[string]*pool{},
		seen: map[string]*sight{}, streams: map[Stream]map[string]*share{}}
}

// Reported takes in reports of a stream. The first report of a bucket id asks for an assignment. It
// returns the keys for which there was no room.
func (m *Machine) Reported(now quantity.NodeTime, from Stream, reports []Report) (full []string) {
	of := m.streams[from]
	if of == nil {
		of = map[string]*share{}
		m.streams[from] = of
	}
	for _, r := range reports {
		s := of[r.Key]
		switch {
		case s == nil && m.shares >= MaxShares:
			full = append(full, r.Key)
			continue
		case s == nil:
			s = &share{stream: from, key: r.Key}
			of[r.Key] = s
			m.shares++
		}
		m.join(now, s, r.Buckets)
		elapsed := min(max(r.Elapsed, 0), maxElapsed) * second
		s.sent = max(s.sent, s.proof.sent(now, elapsed))
		s.cover(now, min(r.Allowed, maxReport))
		s.report(now, elapsed, min(r.Allowed, maxReport), min(r.Denied, maxReport))
	}
	for _, s := range of {
		s.heard = now
	}
	return full
}

// join makes a share draw on the given buckets.
func (m *Machine) join(now quantity.NodeTime, s *share, buckets []*Bucket) {
	if slices.EqualFunc(s.pools, buckets,
		func(p *pool, b *Bucket) bool { return p.ID == b.ID }) {
		for i, b := range buckets {
			s.pools[i].Bucket = b
		}
		return
	}
	// What was assigned of the pools that it leaves goes on until it ends.
	s.pools, s.targets = make([]*pool, len(buckets)), make([]int64, len(buckets))
	for i, b := range buckets {
		p := m.pool(now, b)
		if s.pools[i] = p; !slices.Contains(p.shares, s) {
			p.shares = append(p.shares, s)
		}
		p.due = now
	}
}

// pool returns the pool of a bucket.
func (m *Machine) pool(now quantity.NodeTime, b *Bucket) *pool {
	p := m.pools[b.ID]
	if p == nil {
		if m.seen[b.Store] == nil {
			m.seen[b.Store] = &sight{}
		}
		p = &pool{Bucket: b, seen: m.seen[b.Store], due: now}
		m.pools[b.ID] = p
		at, _ := slices.BinarySearchFunc(m.order, b.ID,
			func(p *pool, id string) int { return strings.Compare(p.ID, id) })
		m.order = slices.Insert(m.order, at, p)
	}
	p.Bucket = b
	return p
}

// Share replaces each of some buckets by the machine's own, if the two are the same. So a driver
// that keeps the buckets of many reports keeps each bucket once.
func (m *Machine) Share(buckets []*Bucket) {
	for i, b := range buckets {
		if p := m.pools[b.ID]; p != nil && *p.Bucket == *b {
			buckets[i] = p.Bucket
		}
	}
}

// Sent takes in that the last assignment of a bucket id is sent to its Envoy.
func (m *Machine) Sent(now quantity.NodeTime, to Stream, key string) {
	if s := m.streams[to][key]; s != nil && len(s.grants) > 0 {
		s.sentLast(now)
	}
}

// Unsent takes in that the last assignment of a bucket id is not sent, because it had to wait for too
// long. It was not assigned, then.
func (m *Machine) Unsent(now quantity.NodeTime, to Stream, key string) {
	s := m.streams[to][key]
	if s == nil || len(s.grants) == 0 {
		return
	}
	s.unsentLast()
	for _, p := range s.pools {
		p.due = now
	}
}

// Ended takes in that a stream is over. Its Envoy may go on as it was told until the assignments
// end.
func (m *Machine) Ended(now quantity.NodeTime, from Stream) {
	for _, s := range m.streams[from] {
		s.end(now)
		m.shares--
		for _, p := range s.pools {
			p.due = now
		}
	}
	delete(m.streams, from)
}

// Left takes in that no assignable limit applies to a bucket id any more.
func (m *Machine) Left(now quantity.NodeTime, from Stream, key string) {
	if s := m.streams[from][key]; s != nil {
		s.end(now)
		m.shares--
		delete(m.streams[from], key)
	}
}

// Drain makes the machine send assignments with a short TTL from now on, because the node ends.
func (m *Machine) Drain(now quantity.NodeTime) {
	m.drains = true
	for _, p := range m.order {
		p.due = now
	}
}

// Tick plans the buckets that are due, and returns the work to do. at is about the time of the
// store.
func (m *Machine) Tick(now quantity.NodeTime, at quantity.StoreTime) Effects {
	m.out = Effects{}
	for _, p := range m.order {
		if now >= p.due {
			m.plan(now, at, p)
		}
	}
	m.order = slices.DeleteFunc(m.order, func(p *pool) bool {
		if over := len(p.shares) == 0 && p.holdsNothing(); over {
			delete(m.pools, p.ID)
			return true
		}
		return false
	})
	return m.out
}

// plan works on one bucket.
func (m *Machine) plan(now quantity.NodeTime, at quantity.StoreTime, p *pool) {
	p.due, p.planned, p.unpaid = p.next(now), now, false
	m.stats.Plans++
	m.stats.Expired += p.forget(now)
	p.roll(now, at)
	p.count()
	m.aim(now, p)
	if p.admitted+p.denied > 0 || p.told {
		p.told = p.admitted+p.denied > 0
		m.out.Demands = append(m.out.Demands,
			Demand{p.ID, quantity.MilliRate(p.admitted), quantity.MilliRate(p.denied)})
	}
	m.out.Holds = p.hold(now, m.out.Holds)
	if !p.known() {
		return
	}
	p.shed(m.nodes)
	m.send(now, p)
	if c := p.fill(now, m.nodes); c.Units > 0 {
		m.out.Charges = append(m.out.Charges, c)
	}
}

// Forget takes in that the store has lost what it held. Assignments that Envoys have stay in force
// until they end. Nothing more is assigned before the store gives rights anew.
func (m *Machine) Forget(now quantity.NodeTime) {
	for _, p := range m.order {
		p.cells, p.first, p.purse, p.due, p.forgot = nil, 0, purse{}, now, now
	}
	for _, s := range m.seen {
		*s = sight{}
	}
}
