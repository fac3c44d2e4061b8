package process

import (
	"math/rand/v2"
	"net/netip"
	"sync"
)

// Lines are the ways between the regions of a fleet: one for each ordered pair, and one inside each
// region, which never has a fault. Without a fault they change nothing. Safe for concurrent use.
//
// Each node advertises the address of a relay in its place, so that traffic to the node goes
// through its relay. The relay knows the sender by the source address, because nodes with chaos:
// true call from the address they listen on. The relay passes traffic on from the address of the
// sender's relay, so that answers also go through a relay.
type Lines struct {
	seed uint64
	stop chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex
	lines  map[[2]string]*line
	relays map[netip.Addr]*relay // by address of the node that they stand for
}

// startLines returns lines without relays.
func startLines(scope Scope, seed uint64) *Lines {
	l := &Lines{seed: seed, stop: make(chan struct{}), lines: map[[2]string]*line{},
		relays: map[netip.Addr]*relay{}}
	scope.Cleanup(l.end)
	return l
}

// Set replaces the fault on the way from one region to another.
func (l *Lines) Set(from, to string, f Fault) { l.line(from, to).set(f) }

// Change changes the fault on the way from one region to another atomically.
func (l *Lines) Change(from, to string, change func(*Fault)) { l.line(from, to).change(change) }

// Fault returns the fault on the way from one region to another.
func (l *Lines) Fault(from, to string) Fault {
	f, _ := l.line(from, to).state()
	return f
}

// StatsOf returns the counts of the way from one region to another.
func (l *Lines) StatsOf(from, to string) (stats LineStats) {
	l.line(from, to).count(func(s *LineStats) { stats = *s })
	return stats
}

// Stats returns the sum of the counts of all lines.
func (l *Lines) Stats() (all LineStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lines {
		one.count(func(s *LineStats) { all.plus(*s) })
	}
	return all
}

// line returns the way from one region to another, and makes it on first use.
func (l *Lines) line(from, to string) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	pair := [2]string{from, to}
	one, known := l.lines[pair]
	if !known {
		one = newLine(rand.New(rand.NewPCG(l.seed, uint64(len(l.lines)))))
		l.lines[pair] = one
	}
	return one
}

// end closes everything that the lines hold, and waits until all goroutines have ended.
func (l *Lines) end() {
	close(l.stop)
	l.mu.Lock()
	for _, r := range l.relays {
		r.close()
	}
	l.mu.Unlock()
	l.work.Wait()
}

// relayOf returns the relay of the node at an address, or nil.
func (l *Lines) relayOf(node netip.Addr) *relay {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.relays[node.Unmap()]
}
