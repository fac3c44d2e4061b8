package gossip

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// maxRemembered bounds the peers in the book.
	maxRemembered = 256
	// callsPerRound bounds the peers called in one round of the rejoin loop. If more are missing,
	// they are called in turn. One answer from the other side of a cut is enough, because gossip
	// spreads the rest.
	callsPerRound = 16
)

// book remembers the addresses of peers, to call them when they are missing. A peer has one entry,
// under its newest address. It is not safe for concurrent use.
type book struct {
	entries map[netip.AddrPort]*entry
}

type entry struct {
	addr  netip.AddrPort
	name  string    // empty until the peer was seen in this run
	seen  time.Time // last known to be alive; zero: in an earlier run
	call  time.Time // last called
	heard time.Time // when it last answered this node; zero: never in this run
}

// trust ranks entries: the lowest go first when there are too many. Without keys anybody can invent
// members, but only real ones answer. Entries of an earlier run come second, because most of them
// answered then.
func (e *entry) trust() int {
	switch {
	case !e.heard.IsZero():
		return 2
	case e.name == "":
		return 1
	}
	return 0
}

func newBook() *book { return &book{entries: make(map[netip.AddrPort]*entry)} }

// recall notes a peer of an earlier run.
func (b *book) recall(addr netip.AddrPort) {
	if b.entries[addr] == nil {
		b.entries[addr] = &entry{addr: addr}
		b.trim()
	}
}

// note notes that a peer is alive, or was until now.
func (b *book) note(name string, addr netip.AddrPort, now time.Time) {
	noted := &entry{addr: addr, name: name, seen: now}
	if old := b.entries[addr]; old != nil && old.name == name {
		noted.heard = old.heard
	}
	b.forget(name)
	// A peer that answered at this address keeps its entry.
	if old := b.entries[addr]; old != nil && !old.heard.IsZero() {
		old.seen = now
		return
	}
	b.entries[addr] = noted
	b.trim()
}

// answered notes that the peer at an address answered this node.
func (b *book) answered(addr netip.AddrPort, now time.Time) {
	if e := b.entries[addr]; e != nil {
		e.heard = now
	}
}

// forget removes a peer by its name, because it has left or has moved.
func (b *book) forget(name string) {
	maps.DeleteFunc(b.entries, func(_ netip.AddrPort, e *entry) bool { return e.name == name })
}

// trim drops the least trusted entries, and of equally trusted ones those not seen for longest.
func (b *book) trim() {
	for len(b.entries) > maxRemembered {
		delete(b.entries, slices.MinFunc(b.sorted(), func(x, y *entry) int {
			return cmp.Or(cmp.Compare(x.trust(), y.trust()), x.seen.Compare(y.seen))
		}).addr)
	}
}

// missing returns the addresses to call now, of peers that are not alive, and notes that they are
// being called. If there are too many, half of the result are the most trusted ones, and of these
// the ones seen last, because they are most likely still there. The other half are called in turn,
// so that no peer is forgotten.
func (b *book) missing(alive map[netip.AddrPort]bool, now time.Time) []netip.AddrPort {
	missing := slices.DeleteFunc(b.sorted(), func(e *entry) bool { return alive[e.addr] })
	if len(missing) > callsPerRound {
		slices.SortStableFunc(missing, func(x, y *entry) int {
			return cmp.Or(cmp.Compare(y.trust(), x.trust()), y.seen.Compare(x.seen))
		})
		inTurn := missing[callsPerRound/2:]
		slices.SortStableFunc(inTurn, func(x, y *entry) int { return x.call.Compare(y.call) })
		missing = missing[:callsPerRound]
	}
	var addrs []netip.AddrPort
	for _, e := range missing {
		e.call = now
		addrs = append(addrs, e.addr)
	}
	return addrs
}

// addrs returns all addresses, in order.
func (b *book) addrs() []string {
	var all []string
	for _, e := range b.sorted() {
		all = append(all, e.addr.String())
	}
	return all
}

// sorted returns the entries in the order of their addresses.
func (b *book) sorted() []*entry {
	return slices.SortedFunc(maps.Values(b.entries),
		func(x, y *entry) int { return x.addr.Compare(y.addr) })
}
