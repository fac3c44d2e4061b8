package process

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Fault is what is wrong on the way from one region to another, in that
// direction alone. The zero value is nothing.
type Fault struct {
	// CutUDP loses every packet, and CutTCP stalls streams, as a network does that
	// drops packets: a stream goes on where it stood when the cut ends, its end
	// included, and a new connection comes to nothing until then.
	CutUDP, CutTCP bool
	// Loss is how many of 100 packets of UDP are lost at random, 0 to 100.
	Loss int
	// Delay is how much longer packets and streams take, 0 or more.
	Delay time.Duration
}

// LineStats counts what lines did to the traffic since they were started.
type LineStats struct {
	Lost    int64 // packets of UDP that a cut or a loss took
	Crowded int64 // packets and connections that a full queue had no room for
	Stalled int64 // how often a stream came to a stand
	Delayed int64 // packets of UDP and pieces of streams that were slowed down
}

// delay counts what sets out under a fault.
func (s *LineStats) delay(f Fault) {
	if f.Delay > 0 {
		s.Delayed++
	}
}

// plus adds the counts of another line.
func (s *LineStats) plus(o LineStats) {
	s.Lost += o.Lost
	s.Crowded += o.Crowded
	s.Stalled += o.Stalled
	s.Delayed += o.Delayed
}

// mostPackets bounds the packets under way on one line; another is dropped and
// counted.
const mostPackets = 1024

// line is the way from one region to another. Safe for concurrent use.
type line struct {
	packets chan packet
	wanted  sync.Once // by the first packet

	mu      sync.Mutex
	random  *rand.Rand
	fault   Fault
	changed chan struct{} // closed, and replaced, when the fault is another
	stats   LineStats
}

// packet is one of UDP under way.
type packet struct {
	bytes   []byte
	due     time.Time
	deliver func([]byte)
}

func newLine(random *rand.Rand) *line {
	return &line{packets: make(chan packet, mostPackets), random: random, changed: make(chan struct{})}
}

// set puts another fault in place of the one before.
func (l *line) set(f Fault) { l.change(func(now *Fault) { *now = f }) }

// change changes the fault as one act.
func (l *line) change(to func(*Fault)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to(&l.fault)
	close(l.changed)
	l.changed = make(chan struct{})
}

// state is the fault, and what is closed when it is another.
func (l *line) state() (Fault, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault, l.changed
}

func (l *line) count(add func(*LineStats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add(&l.stats)
}

// send takes a packet that deliver is given when it has arrived. It never waits.
func (l *line) send(bytes []byte, deliver func([]byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault.CutUDP || l.fault.Loss > 0 && l.random.IntN(100) < l.fault.Loss {
		l.stats.Lost++
		return
	}
	select {
	case l.packets <- packet{bytes, time.Now().Add(l.fault.Delay), deliver}:
		l.stats.delay(l.fault)
	default:
		l.stats.Crowded++
	}
}

// deliver hands packets over when they are due, until stop is closed. One that
// is under way when a cut begins is lost.
func (l *line) deliver(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case p := <-l.packets:
			if !until(p.due, stop) {
				return
			}
			if f, _ := l.state(); f.CutUDP {
				l.count(func(s *LineStats) { s.Lost++ })
				continue
			}
			p.deliver(p.bytes)
		}
	}
}

// pass waits while streams are cut; false: stop was closed first.
func (l *line) pass(stop <-chan struct{}) bool {
	for stalled := false; ; {
		fault, changed := l.state()
		if !fault.CutTCP {
			return true
		}
		if !stalled {
			stalled = true
			l.count(func(s *LineStats) { s.Stalled++ })
		}
		select {
		case <-changed:
		case <-stop:
			return false
		}
	}
}

// until waits for a time; false: stop was closed first.
func until(due time.Time, stop <-chan struct{}) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
