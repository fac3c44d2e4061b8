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
	addr netip.AddrPort
	name string    // empty until the peer was seen in this run
	seen time.Time // last known to be alive; zero: in an earlier run
	call time.Time // last called
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
	b.forget(name)
	b.entries[addr] = &entry{addr: addr, name: name, seen: now}
	b.trim()
}

// forget removes a peer by its name: it has left, or has moved.
func (b *book) forget(name string) {
	for addr, e := range b.entries {
		if e.name == name {
			delete(b.entries, addr)
		}
	}
}

// trim drops those not seen for longest.
func (b *book) trim() {
	for len(b.entries) > maxRemembered {
		delete(b.entries, slices.MinFunc(b.sorted(), func(x, y *entry) int { return x.seen.Compare(y.seen) }).addr)
	}
}

// missing returns whom to call now among those who are not alive: half of them
// those seen last, who most likely are still there, the other half in turn, so
// that nobody is forgotten. It notes that they are being called.
func (b *book) missing(alive map[netip.AddrPort]bool, now time.Time) []netip.AddrPort {
	var missing []*entry
	for _, e := range b.sorted() {
		if !alive[e.addr] {
			missing = append(missing, e)
		}
	}
	if len(missing) > callsPerRound {
		slices.SortStableFunc(missing, func(x, y *entry) int { return y.seen.Compare(x.seen) })
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
