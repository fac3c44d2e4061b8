package gossip

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const (
	// maxRemembered bounds the peers in the book.
	maxRemembered = 256
	// callsPerRound bounds the peers called in one round of the rejoin loop.
	// Larger cuts are called in turn; one answer from a side is enough, since
	// gossip spreads the rest.
	callsPerRound = 16
)

// book remembers where peers were seen, to call them when they are missing. A
// peer has one entry, under its newest address. It is not safe for concurrent
// use.
type book struct {
	entries map[netip.AddrPort]*entry
}

type entry struct {
	addr  netip.AddrPort
	name  string    // empty until the peer was seen in this run
	seen  time.Time // last known to be alive; zero: in an earlier run
	call  time.Time // last called
	heard time.Time // last answered this node; zero: never in this run
}

// trust ranks entries for who must go when there are too many. Without keys
// anybody can invent members, but only those that are there answer; those of an
// earlier run have mostly answered then.
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

// note notes that a peer is, or until now was, alive.
func (b *book) note(name string, addr netip.AddrPort, now time.Time) {
	noted := &entry{addr: addr, name: name, seen: now}
	if old := b.entries[addr]; old != nil && old.name == name {
		noted.heard = old.heard
	}
	b.forget(name)
	if old := b.entries[addr]; old != nil && !old.heard.IsZero() { // whoever answers there keeps its place
		old.seen = now
		return
	}
	b.entries[addr] = noted
	b.trim()
}

// answered notes that whoever is at an address answered this node.
func (b *book) answered(addr netip.AddrPort, now time.Time) {
	if e := b.entries[addr]; e != nil {
		e.heard = now
	}
}

// forget removes a peer by its name: it has left, or has moved.
func (b *book) forget(name string) {
	for addr, e := range b.entries {
		if e.name == name {
			delete(b.entries, addr)
		}
	}
}

// trim drops those trusted least, and of them those not seen for longest.
func (b *book) trim() {
	for len(b.entries) > maxRemembered {
		delete(b.entries, slices.MinFunc(b.sorted(), func(x, y *entry) int {
			return cmp.Or(cmp.Compare(x.trust(), y.trust()), x.seen.Compare(y.seen))
		}).addr)
	}
}

// missing returns whom to call now among those who are not alive: half of them
// those trusted most, and of them those seen last, who most likely are still
// there, the other half in turn, so that nobody is forgotten. It notes that they
// are being called.
func (b *book) missing(alive map[netip.AddrPort]bool, now time.Time) []netip.AddrPort {
	var missing []*entry
	for _, e := range b.sorted() {
		if !alive[e.addr] {
			missing = append(missing, e)
		}
	}
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
	all := make([]*entry, 0, len(b.entries))
	for _, e := range b.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *entry) int {
		return cmp.Or(x.addr.Addr().Compare(y.addr.Addr()), cmp.Compare(x.addr.Port(), y.addr.Port()))
	})
	return all
}
