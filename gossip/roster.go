package gossip

import (
	"bytes"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// roster is this node's view of who is alive. It keeps a copy of its own
// because the nodes memberlist gives out change under the reader's eyes. It
// implements memberlist.EventDelegate, ConflictDelegate and PingDelegate, whose
// methods are called with memberlist's lock held: nothing here calls back into
// memberlist.
type roster struct {
	self    string
	log     *slog.Logger
	panics  Recoverer
	changed chan struct{} // has an element after a change
	arrived chan struct{} // has an element after another member appeared

	mu        sync.Mutex
	closed    bool
	admission *admission
	members   map[string]Member
	goodbyes  map[string]bool           // members who said they would leave
	departed  map[netip.AddrPort]bool   // where they were, at most maxDeparted
	newcomers map[string]netip.AddrPort // members not yet greeted
	book      *book                     // every other member ever seen
}

// maxDeparted bounds the addresses kept of members that left; only those of seeds matter.
const maxDeparted = 1024

func newRoster(c Config) *roster {
	return &roster{
		self:      c.Name,
		log:       c.Logger,
		panics:    c.Recovered,
		admission: newAdmission(c),
		changed:   make(chan struct{}, 1),
		arrived:   make(chan struct{}, 1),
		members:   make(map[string]Member),
		goodbyes:  make(map[string]bool),
		departed:  make(map[netip.AddrPort]bool),
		newcomers: make(map[string]netip.AddrPort),
		book:      newBook(),
	}
}

// NotifyJoin notes that a node appeared, or came back.
func (r *roster) NotifyJoin(n *memberlist.Node) {
	defer r.panics.recover()
	addr, err := nodeAddr(n)
	if err != nil {
		return // the doorkeeper has let none of these in
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	m := Member{Name: n.Name, Addr: addr, Meta: bytes.Clone(n.Meta)}
	r.members[n.Name] = m
	r.admission.joined(m)
	delete(r.goodbyes, n.Name)
	delete(r.departed, addr)
	if n.Name != r.self {
		r.log.Info("gossip: member joined", "member", n.Name, "addr", addr)
		r.book.note(n.Name, addr, time.Now())
		r.newcomers[n.Name] = addr
		signal(r.arrived)
	}
	signal(r.changed)
}

// NotifyLeave notes that a node is gone.
func (r *roster) NotifyLeave(n *memberlist.Node) {
	defer r.panics.recover()
	r.mu.Lock()
	defer r.mu.Unlock()
	gone, ok := r.members[n.Name]
	if r.closed || !ok {
		return
	}
	delete(r.members, n.Name)
	r.admission.left(n.Name)
	delete(r.newcomers, n.Name)
	switch {
	case n.Name == r.self:
	case r.goodbyes[n.Name]:
		// It will call us when it comes back, unless it is a seed that knows nobody: that is called again.
		r.book.forget(n.Name)
		if len(r.departed) < maxDeparted {
			r.departed[gone.Addr] = true
		}
		r.log.Info("gossip: member left", "member", n.Name, "addr", gone.Addr)
	default:
		r.book.note(n.Name, gone.Addr, time.Now())
		r.log.Info("gossip: member failed", "member", n.Name, "addr", gone.Addr)
	}
	delete(r.goodbyes, n.Name)
	signal(r.changed)
}

// NotifyUpdate notes that a node's meta data changed.
func (r *roster) NotifyUpdate(n *memberlist.Node) {
	defer r.panics.recover()
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.members[n.Name]
	if r.closed || !ok {
		return
	}
	m.Meta = bytes.Clone(n.Meta)
	r.members[n.Name] = m
	signal(r.changed)
}

// admit says why a node may not be a member; nil: it may. A node that was a
// member may not become another by new meta data either.
func (r *roster) admit(m Member) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Name == r.self {
		return nil
	}
	_, known := r.members[m.Name]
	now := time.Now()
	err := r.admission.check(m, known, now)
	if err != nil && r.admission.refuse(now) {
		r.log.Warn("gossip: a member is refused; further ones are logged once a minute, and counted",
			"member", strconv.Quote(m.Name), "addr", m.Addr, "err", err)
	}
	return err
}

// AckPayload has nothing to say.
func (r *roster) AckPayload() []byte { return nil }

// NotifyPingComplete notes that a member answered a probe.
func (r *roster) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	defer r.panics.recover()
	if addr, err := nodeAddr(n); err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.book.answered(addr, time.Now())
		r.admission.heard(n.Name, time.Now())
	}
}

// answeredAt notes that a member answered at an address; the lock is held.
func (r *roster) answeredAt(addr netip.AddrPort) {
	now := time.Now()
	r.book.answered(addr, now)
	if e := r.book.entries[addr]; e != nil && r.members[e.name].Addr == addr {
		r.admission.heard(e.name, now)
	}
}

// refused is how many members were refused.
func (r *roster) refused() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admission.refused
}

// NotifyConflict tells the operator of a mistake that only they can mend.
func (r *roster) NotifyConflict(existing, other *memberlist.Node) {
	defer r.panics.recover()
	r.log.Warn("gossip: two nodes have the same name, or one came back elsewhere before it was missed; if this goes on, rename one",
		"name", existing.Name, "addr", existing.Address(), "other", other.Address())
}

// goodbye notes that a member is about to leave. memberlist knows, but does
// not tell, whether one that is gone left or failed.
func (r *roster) goodbye(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.members[name]; ok && name != r.self {
		r.goodbyes[name] = true
	}
}

// close ends all changes: memberlist's timers outlive it by some seconds.
func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// list returns the members, sorted by name.
func (r *roster) list() []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
}

// count is the number of members, at least 1.
func (r *roster) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(1, len(r.members))
}

// isAlive says whether a member is alive at that address.
func (r *roster) isAlive(addr netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive()[addr]
}

// alive is the set of the members' addresses; the lock is held.
func (r *roster) alive() map[netip.AddrPort]bool {
	alive := make(map[netip.AddrPort]bool, len(r.members))
	for _, m := range r.members {
		alive[m.Addr] = true
	}
	return alive
}

// missing returns which of the remembered peers to call now.
func (r *roster) missing() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.missing(r.alive(), time.Now())
}

// wasMember says whether some member was seen at that address in this run.
func (r *roster) wasMember(addr netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.book.entries[addr]
	return r.departed[addr] || e != nil && e.name != ""
}

// recall notes a peer of an earlier run.
func (r *roster) recall(addr netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.book.recall(addr)
}

// remembered returns all peers in the book.
func (r *roster) remembered() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.addrs()
}

// takeNewcomers returns who appeared since the last call and has not been
// greeted yet.
func (r *roster) takeNewcomers() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	addrs := slices.Collect(maps.Values(r.newcomers))
	clear(r.newcomers)
	return addrs
}

// greeted notes that a whole state was exchanged with an address.
func (r *roster) greeted(addr netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.newcomers, func(_ string, a netip.AddrPort) bool { return a == addr })
	r.answeredAt(addr)
}

// signal leaves an element in a channel of one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
