package process

import (
	"math/rand/v2"
	"net/netip"
	"sync"
)

// Lines are the ways between the regions of a fleet: one for each ordered pair,
// and one inside each region, which is always sound. Without a fault they change
// nothing. Safe for concurrent use.
//
// A node advertises the address of a relay that stands for it, so what others
// send to it comes by there. Who sent it is told by its source address: nodes
// with the setting chaos: true call from the address that they listen on. What
// the relay hands on comes from the sender's relay, so that answers take the way
// through a relay as well.
type Lines struct {
	seed uint64
	stop chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex
	lines  map[[2]string]*line
	relays map[netip.Addr]*relay // by the address of the node that they stand for
}

// startLines returns lines without relays.
func startLines(scope Scope, seed uint64) *Lines {
	l := &Lines{seed: seed, stop: make(chan struct{}), lines: map[[2]string]*line{}, relays: map[netip.Addr]*relay{}}
	scope.Cleanup(l.end)
	return l
}

// Set puts a fault on the way from one region to another, in place of the one
// before.
func (l *Lines) Set(from, to string, f Fault) { l.line(from, to).set(f) }

// Change changes the fault on the way from one region to another as one act.
func (l *Lines) Change(from, to string, change func(*Fault)) { l.line(from, to).change(change) }

// Fault is what is wrong on the way from one region to another.
func (l *Lines) Fault(from, to string) Fault {
	f, _ := l.line(from, to).state()
	return f
}

// StatsOf is what the way from one region to another did.
func (l *Lines) StatsOf(from, to string) (stats LineStats) {
	l.line(from, to).count(func(s *LineStats) { stats = *s })
	return stats
}

// Stats adds up what all lines did.
func (l *Lines) Stats() (all LineStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lines {
		one.count(func(s *LineStats) { all.plus(*s) })
	}
	return all
}

// line is the way from one region to another.
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

// end lets go of all that the lines hold, and waits until it is gone.
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
