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

// roster is this node's view of which members are alive. It has a copy of its own, because
// memberlist changes the nodes that it hands out while they are read. It implements
// memberlist.EventDelegate, ConflictDelegate and PingDelegate. Their methods are called with
// memberlist's lock held, so nothing here calls back into memberlist.
type roster struct {
	self    string
	log     *slog.Logger
	panics  Recoverer
	changed chan struct{} // holds an element after a change
	arrived chan struct{} // holds an element after another member appeared

	mu        sync.Mutex
	closed    bool
	leaving   bool // this node has said goodbye, or is about to
	admission *admission
	members   map[string]Member
	goodbyes  map[string]bool           // members that said they would leave
	silent    map[string]Member         // members that are gone since less than goodbyePatience, without a goodbye
	departed  map[netip.AddrPort]bool   // addresses of members that left, at most maxDeparted
	newcomers map[string]netip.AddrPort // members not yet greeted
	book      *book                     // every other member ever seen
	namesake  *Member                   // another node that has this node's name; nil: none was met
}

// maxDeparted bounds the addresses kept of members that left. Only the addresses of seeds matter.
const maxDeparted = 1024

// goodbyePatience is how long after a member is gone its goodbye may come. memberlist handles the
// newest of the packets first that wait, so on a busy machine the goodbye may be the later one.
const goodbyePatience = time.Second

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
		silent:    make(map[string]Member),
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
		return // the doorkeeper has let in no such node
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	m := Member{Name: n.Name, Addr: addr, Meta: bytes.Clone(n.Meta)}
	r.failed(n.Name)
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
		r.left(gone)
	case r.leaving:
		// Who leaves says goodbye to the members that it still sees, and this node may no longer be
		// one of them. So nobody knows whether the member left or failed.
		r.book.note(n.Name, gone.Addr, time.Now())
		r.log.Info("gossip: member gone while this node leaves", "member", n.Name, "addr", gone.Addr)
	default:
		r.book.note(n.Name, gone.Addr, time.Now())
		r.silent[n.Name] = gone
		time.AfterFunc(goodbyePatience, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failed(gone.Name)
		})
	}
	delete(r.goodbyes, n.Name)
	signal(r.changed)
}

// left notes that a member left. It will call us when it comes back. A seed may know nobody to
// call, so departed keeps the address, and the seed is called again. The caller holds the lock.
func (r *roster) left(gone Member) {
	r.book.forget(gone.Name)
	if len(r.departed) < maxDeparted {
		r.departed[gone.Addr] = true
	}
	r.log.Info("gossip: member left", "member", gone.Name, "addr", gone.Addr)
}

// failed notes that a member that is gone will not say goodbye any more. The caller holds the lock.
func (r *roster) failed(name string) {
	gone, ok := r.silent[name]
	if r.closed || !ok {
		return
	}
	delete(r.silent, name)
	r.log.Info("gossip: member failed", "member", name, "addr", gone.Addr)
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

// admit returns why a node may not be a member, or nil if it may. It also judges a member whose
// meta data changed.
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

// AckPayload implements memberlist.PingDelegate. It adds nothing to an answer.
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

// answeredAt notes that a member answered at an address. The caller holds the lock.
func (r *roster) answeredAt(addr netip.AddrPort) {
	now := time.Now()
	r.book.answered(addr, now)
	if e := r.book.entries[addr]; e != nil && r.members[e.name].Addr == addr {
		r.admission.heard(e.name, now)
	}
}

// refused returns how many times a member was refused.
func (r *roster) refused() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admission.refused
}

// NotifyConflict logs a mistake that only the operator can correct, and remembers a node that has
// the name of this one.
func (r *roster) NotifyConflict(existing, other *memberlist.Node) {
	defer r.panics.recover()
	if addr, err := nodeAddr(other); err == nil && existing.Name == r.self {
		r.mu.Lock()
		r.namesake = &Member{Name: other.Name, Addr: addr, Meta: bytes.Clone(other.Meta)}
		r.mu.Unlock()
	}
	r.log.Warn("gossip: two nodes have the same name, or one came back elsewhere before it was missed; if this goes on, rename one",
		"name", existing.Name, "addr", existing.Address(), "other", other.Address())
}

// goodbye notes that a member is about to leave. memberlist knows whether a member that is gone
// left or failed, but does not tell.
func (r *roster) goodbye(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone, ok := r.silent[name]; ok && !r.closed {
		delete(r.silent, name)
		r.left(gone)
	} else if _, ok := r.members[name]; ok && name != r.self {
		r.goodbyes[name] = true
	}
}

// leave notes that this node leaves, and returns the other members.
func (r *roster) leave() (others []Member) {
	r.mu.Lock()
	r.leaving = true
	r.mu.Unlock()
	return r.others()
}

// others returns the members without this node.
func (r *roster) others() []Member {
	return slices.DeleteFunc(r.list(), func(m Member) bool { return m.Name == r.self })
}

// close makes the roster ignore further changes: memberlist's timers outlive memberlist by some
// seconds.
func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// list returns the members, sorted by name.
func (r *roster) list() []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.members),
		func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
}

// count returns the number of members, at least 1.
func (r *roster) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(1, len(r.members))
}

// isAlive reports whether a live member has this address.
func (r *roster) isAlive(addr netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive()[addr]
}

// alive returns the members' addresses. The caller holds the lock.
func (r *roster) alive() map[netip.AddrPort]bool {
	alive := make(map[netip.AddrPort]bool, len(r.members))
	for _, m := range r.members {
		alive[m.Addr] = true
	}
	return alive
}

// missing returns the addresses of remembered peers to call now.
func (r *roster) missing() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.missing(r.alive(), time.Now())
}

// wasMember reports whether a member was seen at this address in this run.
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

// takeNewcomers returns the addresses of members that appeared since the last call and have not
// been greeted yet.
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

// signal puts an element into a channel of capacity one, unless it has one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
