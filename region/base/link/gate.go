package link

import (
	"net/netip"
	"sync"
	"time"
)

// Direction says which way a cut goes, as seen from this end.
type Direction uint8

// The directions.
const (
	In   Direction = 1 << iota // what the others send is lost
	Out                        // what is sent to the others is lost
	Both = In | Out
)

// MaxCut is the longest cut of a Gate. A rehearsal is short, and a forgotten one must end.
const MaxCut = 10 * time.Minute

// Gate makes cuts on real sockets, as chaos/lab/network does on its own connections. Traffic
// through its dialers, listeners and packet connections to and from a cut address is dropped, as on
// a network that drops packets. A packet vanishes. A stream stalls, and after the cut goes on where
// it was, including its end. A dial hangs until the cut or its context ends. The far end needs no
// gate, but it sees a stream open at once, where a real cut would let it hang.
//
// What the system was given to send before a cut still arrives. If a connection is closed during a
// cut, the far end sees it when the cut ends. If the process ends, the others notice it in spite of
// the cut. Every cut ends by itself. Methods are safe for concurrent use.
type Gate struct {
	clock clock

	mu sync.Mutex
	// Signalled when a cut began or ended, a call began to wait, or a connection closed or got
	// another deadline.
	changed sync.Cond
	cuts    map[netip.Addr]*cut
	stop    func()                // stops the timer; nil: none is set
	closed  map[*gated]netip.Addr // closed connections whose end the far end must not see yet
	stats   GateStats
}

// GateStats counts what a gate has done since it was made.
type GateStats struct {
	PacketsDropped uint64
	Stalled        int // calls that now wait for the end of a cut
}

// cut says until when each direction to an address is cut; zero: not cut.
type cut struct{ in, out time.Time }

// clock tells when cuts end.
type clock interface {
	Now() time.Time
	// After calls f once, in a goroutine of its own, when d has passed, unless stop is called
	// before.
	After(d time.Duration, f func()) (stop func())
}

// NewGate returns a gate that cuts nothing.
func NewGate() *Gate { return newGate(wallClock{}) }

func newGate(c clock) *Gate {
	g := &Gate{clock: c, cuts: map[netip.Addr]*cut{}, closed: map[*gated]netip.Addr{}}
	g.changed.L = &g.mu
	return g
}

// wallClock is the clock of the machine.
type wallClock struct{}

// Now implements clock.
func (wallClock) Now() time.Time { return time.Now() }

// After implements clock.
func (wallClock) After(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// Cut cuts traffic to or from the addresses for d, at most MaxCut. It replaces earlier cuts of the
// same addresses in the same directions; d <= 0 heals.
func (g *Gate) Cut(ips []netip.Addr, way Direction, d time.Duration) {
	g.mu.Lock()
	until := g.clock.Now().Add(min(d, MaxCut))
	for _, ip := range ips {
		ip = plain(ip)
		c := g.cuts[ip]
		if c == nil {
			c = &cut{}
			g.cuts[ip] = c
		}
		if way&In != 0 {
			c.in = until
		}
		if way&Out != 0 {
			c.out = until
		}
	}
	ended := g.settle()
	g.mu.Unlock()
	closeAll(ended)
}

// Heal ends every cut.
func (g *Gate) Heal() {
	g.mu.Lock()
	clear(g.cuts)
	ended := g.settle()
	g.mu.Unlock()
	closeAll(ended)
}

// IsCut reports whether traffic to or from an address in one of these directions is lost now.
func (g *Gate) IsCut(ip netip.Addr, way Direction) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isCut(plain(ip), way)
}

// Stats returns the counters.
func (g *Gate) Stats() GateStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

// isCut is IsCut with the lock held.
func (g *Gate) isCut(ip netip.Addr, way Direction) bool {
	c := g.cuts[ip]
	if c == nil {
		return false
	}
	now := g.clock.Now()
	return way&In != 0 && now.Before(c.in) || way&Out != 0 && now.Before(c.out)
}

// settle forgets cuts that are over, wakes all that wait, and sets the timer to the next end of a
// cut. It returns the connections whose close the far end may see now. The caller holds the lock.
func (g *Gate) settle() (ended []*gated) {
	now := g.clock.Now()
	var next time.Time
	for ip, c := range g.cuts {
		if !now.Before(c.in) && !now.Before(c.out) {
			delete(g.cuts, ip)
			continue
		}
		for _, end := range []time.Time{c.in, c.out} {
			if now.Before(end) && (next.IsZero() || end.Before(next)) {
				next = end
			}
		}
	}
	for c, ip := range g.closed {
		if !g.isCut(ip, Out) {
			ended = append(ended, c)
			delete(g.closed, c)
		}
	}
	if g.stop != nil {
		g.stop()
		g.stop = nil
	}
	if !next.IsZero() {
		g.stop = g.clock.After(next.Sub(now), g.end)
	}
	g.changed.Broadcast()
	return ended
}

// end runs when a cut ends.
func (g *Gate) end() {
	g.mu.Lock()
	ended := g.settle()
	g.mu.Unlock()
	closeAll(ended)
}

// closeAll closes connections, outside the gate's lock.
func closeAll(ended []*gated) {
	for _, c := range ended {
		_ = c.Conn.Close() // its owner closed it before: there is nobody to tell of an error
	}
}

// pass waits until traffic to or from an address in these directions is not cut, or until stopped
// returns an error, which pass returns. It calls stopped with the lock held.
func (g *Gate) pass(ip netip.Addr, way Direction, stopped func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := stopped(); err != nil || !g.isCut(ip, way) {
		return err
	}
	g.stats.Stalled++
	g.changed.Broadcast()
	defer func() { g.stats.Stalled-- }()
	for {
		g.changed.Wait()
		if err := stopped(); err != nil || !g.isCut(ip, way) {
			return err
		}
	}
}

// plain returns an address in the one form in which addresses can be compared.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }
