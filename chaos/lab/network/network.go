package network

import (
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// maxHosts is the number of addresses from 10.77.0.1 to 10.77.255.255.
const maxHosts = 1<<16 - 1

// Network is a set of hosts and the directed links between them. Its methods
// are safe for concurrent use.
type Network struct {
	mu     sync.Mutex // guards everything reachable from here
	closed bool
	done   chan struct{} // closed by Close
	delay  time.Duration // of links that SetDelay did not name
	hosts  map[string]*Host
	byIP   map[netip.Addr]*Host
	wires  map[pair]*wire
	conns  map[*conn]struct{} // open ones
}

// pair names a directed link.
type pair struct{ from, to *Host }

// New returns a network without hosts. Links have no delay until it is set.
func New() *Network {
	return &Network{
		done:  make(chan struct{}),
		hosts: make(map[string]*Host),
		byIP:  make(map[netip.Addr]*Host),
		wires: make(map[pair]*wire),
		conns: make(map[*conn]struct{}),
	}
}

// Host returns the host of that name, which is made on first use. Its address
// depends only on how many hosts were made before it. It panics beyond 65,535
// hosts.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.host(name)
}

func (n *Network) host(name string) *Host {
	if h := n.hosts[name]; h != nil {
		return h
	}
	i := len(n.hosts) + 1
	if i > maxHosts {
		panic(fmt.Sprintf("network: no address left for host %q: a network has at most %d hosts",
			name, maxHosts))
	}
	h := &Host{
		net:       n,
		name:      name,
		ip:        netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i)}),
		listeners: make(map[uint16]*listener),
		packets:   make(map[uint16]*packetConn),
		ephemeral: firstEphemeral,
	}
	n.hosts[name] = h
	n.byIP[h.ip] = h
	return h
}

// wire returns the link between two hosts, making it on first use.
func (n *Network) wire(from, to *Host) *wire {
	p := pair{from, to}
	w := n.wires[p]
	if w == nil {
		w = &wire{net: n, from: from, to: to}
		if from != to {
			w.delay = n.delay
		}
		n.wires[p] = w
	}
	return w
}

// between calls f for the link between two named hosts. A host's link to
// itself can be neither delayed nor cut, so there f is not called.
func (n *Network) between(from, to string, f func(w *wire, now time.Time)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || from == to {
		return
	}
	f(n.wire(n.host(from), n.host(to)), time.Now())
}

// SetDelay sets the one-way delay from one host to another, at least 0. It
// holds for what is sent from now on; nothing overtakes what is on its way
// already.
func (n *Network) SetDelay(from, to string, oneWay time.Duration) {
	n.between(from, to, func(w *wire, _ time.Time) { w.delay = max(0, oneWay) })
}

// SetDelayAll sets the one-way delay of every link between different hosts,
// those of hosts yet to be made included.
func (n *Network) SetDelayAll(oneWay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = max(0, oneWay)
	for p, w := range n.wires {
		if p.from != p.to {
			w.delay = n.delay
		}
	}
}

// Cut cuts the link from one host to another for d, in that direction only. A
// later Cut replaces the end of an earlier one, even by a sooner end; d <= 0
// heals: streams deliver what they held back one delay later.
func (n *Network) Cut(from, to string, d time.Duration) {
	n.between(from, to, func(w *wire, now time.Time) { w.cut(now, now.Add(d)) })
}

// CutBoth cuts the links between two hosts in both directions for d.
func (n *Network) CutBoth(a, b string, d time.Duration) {
	n.Cut(a, b, d)
	n.Cut(b, a, d)
}

// Isolate cuts the named host off from every other host that exists now, in
// both directions, for d.
func (n *Network) Isolate(name string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	now, lone := time.Now(), n.host(name)
	for _, other := range n.hosts {
		if other != lone {
			n.wire(lone, other).cut(now, now.Add(d))
			n.wire(other, lone).cut(now, now.Add(d))
		}
	}
}

// HealAll ends every cut.
func (n *Network) HealAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	now := time.Now()
	for _, w := range n.wires {
		w.cut(now, now)
	}
}

// Stats returns the counters of the link from one host to another.
func (n *Network) Stats(from, to string) Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wire(n.host(from), n.host(to)).stats
}

// Close ends every connection, listener and dial at once, with net.ErrClosed.
// What was on its way is lost. It is idempotent and returns nil.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	close(n.done)
	for _, w := range n.wires {
		w.stop()
	}
	for _, h := range n.hosts {
		for _, l := range h.listeners {
			l.shut()
		}
		for _, c := range h.packets {
			c.shut()
		}
	}
	for c := range n.conns {
		c.shut()
	}
	return nil
}
