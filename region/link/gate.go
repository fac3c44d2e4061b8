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

// MaxCut is the longest that a Gate cuts anything off: a rehearsal is short, and one that was forgotten must end.
const MaxCut = 10 * time.Minute

// Gate makes cuts on real sockets, as Network does on its own. What goes through its dialers, listeners and packet
// connections is dropped towards the addresses that are cut, as on a network that drops packets: a packet vanishes, a
// stream stalls and goes on after the cut where it stood, its end included, and a dial hangs until its context ends.
// The far end needs no gate, but sees a stream open at once where a real cut would let it hang.
//
// What the system was given to send before a cut still arrives, and what is closed during one is closed for the far end
// at its end; a process that ends is noticed by the others whatever is cut. Every cut ends by itself. Methods are safe
// for concurrent use.
type Gate struct {
	clock clock

	mu      sync.Mutex
	changed sync.Cond // a cut began or ended, a call began to wait, or a connection closed or got another deadline
	cuts    map[netip.Addr]*cut
	stop    func()                // of the timer; nil: none is set
	closed  map[*gated]netip.Addr // connections whose end must not be seen yet
	stats   GateStats
}

// GateStats counts what a gate did since it was made.
type GateStats struct {
	PacketsDropped uint64
	Stalled        int // calls that wait for the end of a cut now
}

// cut says until when each direction to an address is cut; zero: it is not.
type cut struct{ in, out time.Time }

// clock is the time that cuts end by.
type clock interface {
	Now() time.Time
	// After calls f once, in a goroutine of its own, when d has passed, unless stop is called before.
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

// Cut cuts what goes these ways to or from the addresses for d, at most MaxCut, in place of what was cut there in the
// same direction before; d <= 0 heals.
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

// IsCut says whether anything that goes one of these ways to or from an address is lost now.
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

// settle forgets what is over, wakes those who wait, and sets the timer to the next end. It returns the connections
// whose close the far end may see now. The lock is held.
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

// end runs when a cut does.
func (g *Gate) end() {
	g.mu.Lock()
	ended := g.settle()
	g.mu.Unlock()
	closeAll(ended)
}

// closeAll closes outside the gate's lock.
func closeAll(ended []*gated) {
	for _, c := range ended {
		_ = c.Conn.Close() // closed for its owner long since: nobody to tell
	}
}

// pass waits until nothing that goes this way is cut, or until stopped, called with the lock held, says why not to.
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

// plain returns an address in the one form in which addresses compare.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }
