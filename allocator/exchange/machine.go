package exchange

import (
	"maps"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

const (
	// Interval is the time between ticks that the plan counts on.
	Interval = allocator.Second / 5
	// MostBuckets bounds the buckets a node plans for; beyond it new ones keep to their entitlement. A tick plans all
	// of them, at about 2 us each.
	MostBuckets = 20_000
	// MostAsks bounds the asks in one message.
	MostAsks = 256
)

// Machine is the protocol of one node. It is deterministic: the same events at the same times give the same effects.
// Not safe for concurrent use.
type Machine struct {
	region, node string
	generation   uint64
	epoch        string
	peers        []*peer
	views        map[string]*view
	order        []string // ids of views, sorted
	serving      map[uint64]*serving
	calls        map[uint64]*call
	lastCall     uint64
	offset       int64 // store time less node time, as last seen
	noHints      bool
	noAdvance    bool
	noLending    bool
	noBurst      bool
	noTail       bool
	noJournal    bool // a row could not be made durable: nothing is lent until the node starts anew
	stats        Stats
	out          Effects
}

// Options switch parts of the protocol off, so that tests can show what each is for. The zero value is the protocol.
type Options struct {
	WithoutHints   bool // hints are neither published nor believed
	WithoutAdvance bool // no rights are asked for the next cell
	WithoutLending bool // asks are answered with nothing
	WithoutBurst   bool // no burst rights are asked for
	WithoutTail    bool // only peers that are thought to have something are asked
}

// Stats counts what a machine has done.
type Stats struct {
	Asks           int64 // asks sent
	AsksRefused    int64 // asks answered without a unit
	UnitsBorrowed  int64
	UnitsRegained  int64
	UnitsLent      int64
	UnitsReturned  int64
	BurstLent      int64 // tokens
	BurstBorrowed  int64
	Unanswered     int64 // calls
	Dropped        int64 // asks not sent because too many calls were under way
	Refusals       int64 // asks we did not look into
	Implausible    int64 // messages with amounts that no honest region sends
	HintsPublished int64
	Buckets        int64 // in view
	JournalFailed  bool  // lending has stopped until the node starts anew
}

// New returns the machine of a node; it does nothing before it is told where it stands.
func New(region, node string, o Options) *Machine {
	return &Machine{
		region: region, node: node,
		noHints: o.WithoutHints, noAdvance: o.WithoutAdvance, noLending: o.WithoutLending,
		noBurst: o.WithoutBurst, noTail: o.WithoutTail,
		views: map[string]*view{}, serving: map[uint64]*serving{}, calls: map[uint64]*call{},
	}
}

// Step hears an event at node time now (microseconds of a clock that never goes back; any origin above zero).
func (m *Machine) Step(now int64, event Event) Effects {
	m.out = Effects{}
	switch e := event.(type) {
	case Tick:
		m.tick(now, e)
	case Observed:
		m.observed(now, e)
	case Report:
		for _, o := range e {
			m.observed(now, o)
		}
	case Wanted:
		m.wanted(now, e)
	case Asked:
		m.askedBy(now, e)
	case Lent:
		m.lent(now, e)
	case Recorded:
		m.recorded(e)
	case Answered:
		m.answered(now, e)
	case Unanswered:
		m.unanswered(now, e)
	case Credited:
		m.credited(now, e)
	case Heard:
		m.heard(now, e.Hint)
	case Stood:
		m.stood(e)
	}
	return m.out
}

// Stats returns what the machine has done so far.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Buckets = int64(len(m.views))
	s.JournalFailed = m.noJournal
	return s
}

// PeerAge is how long ago the last answered call to a peer was sent.
type PeerAge struct {
	Peer      string
	Heard     bool // false: it never answered
	Age       int64
	RoundTrip int64
	Degraded  bool
}

// Ages returns the age of every peer's last answer, in the document's order.
func (m *Machine) Ages(now int64) []PeerAge {
	ages := make([]PeerAge, len(m.peers))
	for i, p := range m.peers {
		ages[i] = PeerAge{Peer: p.name, Heard: p.heard, RoundTrip: p.roundTrip, Degraded: p.degraded(now)}
		if p.heard {
			ages[i].Age = now - p.answered
		}
	}
	return ages
}

// stood takes over a generation, an epoch and the peers of its document.
func (m *Machine) stood(e Stood) {
	if e.Generation != m.generation { // else the store still has the rows that are in view
		clear(m.views)
		m.order = nil
	}
	m.generation, m.epoch = e.Generation, e.Epoch
	peers := make([]*peer, 0, len(e.Peers))
	for _, name := range e.Peers {
		if p := m.peer(name); p != nil {
			peers = append(peers, p)
		} else {
			peers = append(peers, &peer{name: name})
		}
	}
	m.peers = peers
	clear(m.serving)
	for _, v := range m.views {
		maps.DeleteFunc(v.dealings, func(name string, _ *dealing) bool { return m.peer(name) == nil })
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

// tick samples demand, plans, pings, publishes and forgets.
func (m *Machine) tick(now int64, e Tick) {
	m.forget(now)
	for _, id := range m.order {
		v := m.views[id]
		v.demand.Sample(v.admitted, v.denied, max(now-v.sampled, Interval/2))
		if v.Epoch == m.epoch { // else its terms are of an older document: it waits to be used under this one
			m.plan(now, v, e.Jitter)
			m.publish(now, v)
		}
		v.admitted, v.denied, v.sampled = 0, 0, now
		if now >= v.wantedUntil {
			v.wanted = 0
		}
	}
	for _, p := range m.peers {
		if now-p.called >= PingEvery-Interval/2 && p.underway < MostCalls {
			m.call(now, p)
		}
	}
}

// forget drops the views of buckets that nobody uses or asks about.
func (m *Machine) forget(now int64) {
	m.order = slices.DeleteFunc(m.order, func(id string) bool {
		idle := now-m.views[id].active > idleAfter
		if idle {
			delete(m.views, id)
		}
		return idle
	})
}

// view returns what is known of a bucket, beginning to know it if there is room; nil if there is none.
func (m *Machine) view(now int64, b *Bucket) *view {
	v := m.views[b.ID]
	if v == nil {
		if len(m.views) >= MostBuckets {
			return nil
		}
		v = &view{Bucket: b, self: m.region, sampled: now, dealings: map[string]*dealing{}}
		f := v.entitlement()
		v.state = algorithms.State{Cell: algorithms.CellAt(now+m.offset, b.Cell), Entitlement: f, Share: f, NextShare: f, Free: f}
		if b.Kind.Bucket() {
			v.state.Free = b.Bursts[m.region]
		}
		m.views[b.ID] = v
		at, _ := slices.BinarySearch(m.order, b.ID)
		m.order = slices.Insert(m.order, at, b.ID)
	}
	v.Bucket = b
	v.active = now
	return v
}

// observed takes in decisions and plans at once if the share is about to run out.
func (m *Machine) observed(now int64, e Observed) {
	m.offset = e.Now - now
	v := m.view(now, e.Bucket)
	if v == nil {
		return
	}
	v.observe(e.State, e.Now)
	v.admitted = min(v.admitted+e.Admitted, algorithms.MaxUnits)
	v.denied = min(v.denied+e.Denied, algorithms.MaxUnits)
	if e.Denied > 0 {
		v.deniedAt = now
	}
	m.planInNeed(now, v)
}

// heard notes a hint on a bucket in view, after cutting its numbers to what can be computed with.
func (m *Machine) heard(now int64, h Hint) {
	v := m.views[h.Bucket]
	if m.noHints || v == nil || m.peer(h.Region) == nil {
		return
	}
	bound := func(units int64) int64 { return min(max(units, 0), algorithms.MaxUnits) }
	h.Used, h.Total, h.Rate, h.Share = bound(h.Used), bound(h.Total), bound(h.Rate), bound(h.Share)
	h.Spare, h.SpareBurst = bound(h.Spare), bound(h.SpareBurst)
	d := v.dealing(h.Region)
	d.hint, d.heardAt = h, now
	v.asked = now
}

// publish hints at a bucket that other regions care about: one that is over half used here, or asked about.
func (m *Machine) publish(now int64, v *view) {
	s := now + m.offset
	cell := algorithms.CellAt(s, v.Cell)
	v.roll(cell)
	rate := v.demand.Rate(v.Cell)
	o, _ := v.outlook(cell, s, rate)
	concerns := v.asked > 0 && now-v.asked <= idleAfter
	if m.noHints || (!concerns && 2*o.Total() <= v.entitlement() && 2*v.state.Free >= v.Bursts[m.region]) {
		return
	}
	h := Hint{Region: m.region, Node: m.node, Bucket: v.ID, Cell: cell, Used: o.Used, Total: o.Total(), Rate: rate, Share: v.state.Share}
	h.Spare, h.SpareBurst = m.spares(v, o)
	if now-v.shownAt < allocator.Second && !differs(v.shown, h, v.entitlement(), v.Bursts[m.region]) {
		return
	}
	v.shown, v.shownAt = h, now
	m.stats.HintsPublished++
	m.out.Hints = append(m.out.Hints, h)
}

// spares returns what this region would lend of the current cell if it were asked now.
func (m *Machine) spares(v *view, o allocator.Outlook) (units, burst int64) {
	var out, outBurst int64
	for _, p := range m.peers {
		row := v.dealing(p.name).at(v.state.Cell).row
		out += row.Lent - row.Regained
		outBurst += row.BurstLent
	}
	units = v.state.Share - o.Used - allocator.Kept(o, o.Used, v.entitlement(), m.grace(), 0)
	burst = v.state.Free - allocator.KeptBurst(o, v.state.Share, m.grace())
	return max(min(units, v.lendable(m.region)-out), 0), max(min(burst, v.lendableBurst(m.region)-outBurst), 0)
}

// differs says whether a hint is worth sending before its time: another cell of a window, or a change of a twentieth.
func differs(old, now Hint, entitlement, burst int64) bool {
	far := func(a, b, of int64) bool { return max(a-b, b-a)*20 > of }
	return old.Cell != now.Cell || far(old.Rate, now.Rate, old.Rate) ||
		far(old.Share, now.Share, entitlement) || far(old.Spare, now.Spare, entitlement) ||
		far(old.SpareBurst, now.SpareBurst, burst)
}

// grace is the time in which this region could ask for rights it has lent: a round trip to the farthest peer it
// hears and a tick.
func (m *Machine) grace() int64 {
	farthest := int64(0)
	for _, p := range m.peers {
		farthest = max(farthest, p.expected())
	}
	return farthest + Interval
}
