package process

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Fault is what is wrong on the way from one region to another, in that direction alone. The zero
// value is no fault.
type Fault struct {
	// CutUDP loses every packet. CutTCP stalls streams, like a network that drops packets: when the
	// cut ends, streams continue where they stood, including their end. Until then no new
	// connection succeeds.
	CutUDP, CutTCP bool
	// Loss is the percentage of UDP packets that are lost at random, 0 to 100.
	Loss int
	// Delay is the additional time that packets and streams take, 0 or more.
	Delay time.Duration
}

// LineStats counts what lines did to the traffic since they were started.
type LineStats struct {
	Lost    int64 // UDP packets lost by a cut or by Loss
	Crowded int64 // packets and connections dropped because a queue was full
	Stalled int64 // how often a stream stalled
	Delayed int64 // UDP packets and pieces of streams that were delayed
}

// delay counts a packet or piece that is sent under a fault.
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

// maxPackets is the maximum number of packets under way on one line. Further packets are dropped
// and counted.
const maxPackets = 1024

// line is the way from one region to another. Safe for concurrent use.
type line struct {
	packets chan packet
	wanted  sync.Once // starts delivery with the first packet

	mu      sync.Mutex
	random  *rand.Rand
	fault   Fault
	changed chan struct{} // closed and replaced when the fault changes
	stats   LineStats
}

// packet is a UDP packet under way.
type packet struct {
	bytes   []byte
	due     time.Time
	deliver func([]byte)
}

func newLine(random *rand.Rand) *line {
	return &line{packets: make(chan packet, maxPackets), random: random,
		changed: make(chan struct{})}
}

// set replaces the fault.
func (l *line) set(f Fault) { l.change(func(now *Fault) { *now = f }) }

// change changes the fault atomically.
func (l *line) change(to func(*Fault)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to(&l.fault)
	close(l.changed)
	l.changed = make(chan struct{})
}

// state returns the fault, and a channel that is closed when the fault changes.
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

// send sends a packet. deliver is called with it when it has arrived. send never waits.
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

// deliver delivers packets when they are due, until stop is closed. Packets under way when a cut
// begins are lost.
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

// pass waits while streams are cut. It returns false if stop was closed first.
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

// until waits until due. It returns false if stop was closed first.
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
