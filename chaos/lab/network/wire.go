package network

import (
	"net/netip"
	"time"
)

// maxPacketsOnWire bounds the packets on their way over one link; a sender
// beyond it loses packets, as on a full router.
const maxPacketsOnWire = 8192

// Stats counts what one directed link has carried since the network was made.
type Stats struct {
	PacketsDelivered uint64 // handed to a receiver's queue
	PacketsDropped   uint64 // cut, nobody listening, or a full queue
	StreamBytes      uint64 // bytes that arrived at the far end
	Dials            uint64 // connection attempts that arrived at the far end
}

// datagram is a packet on its way.
type datagram struct {
	from, to netip.AddrPort
	payload  []byte
}

// segment is a piece of a stream on its way, or one half of its handshake.
// land is called with the network's lock held.
type segment interface{ land(now time.Time) }

// wire is one directed link. All of it is guarded by net.mu.
type wire struct {
	net      *Network
	from, to *Host
	delay    time.Duration
	cutUntil time.Time // zero: not cut

	packets  queue[datagram]
	segments queue[segment]

	timer *time.Timer // fires at wake; made when first needed
	wake  time.Time   // zero: the timer is not set
	stats Stats
}

// isCut reports whether the link is cut; settle must have been called for now.
func (w *wire) isCut() bool { return !w.cutUntil.IsZero() }

// settle ends a cut that is over. Streams then send again what did not arrive,
// which takes one delay from the moment of the heal.
func (w *wire) settle(now time.Time) {
	if w.cutUntil.IsZero() || now.Before(w.cutUntil) {
		return
	}
	w.segments.postpone(w.cutUntil.Add(w.delay))
	w.cutUntil = time.Time{}
}

// cut cuts the link until the given time, replacing an earlier end. A time
// that is not in the future heals.
func (w *wire) cut(now, until time.Time) {
	w.advance(now)
	if until.After(now) {
		w.cutUntil = until
	} else if w.isCut() {
		w.cutUntil = now
	}
	w.advance(now)
}

// sendPacket puts a packet on its way, or drops it.
func (w *wire) sendPacket(now time.Time, d datagram) {
	w.settle(now)
	if w.isCut() || w.packets.len() >= maxPacketsOnWire {
		w.stats.PacketsDropped++
		return
	}
	w.packets.push(now.Add(w.delay), d)
	w.advance(now)
}

// sendSegment puts a piece of a stream on its way.
func (w *wire) sendSegment(now time.Time, s segment) {
	w.settle(now)
	w.segments.push(now.Add(w.delay), s)
	w.advance(now)
}

// advance delivers what is due and sets the timer for what comes next.
// Delivering may send over this or another wire, and so call advance again:
// each step therefore takes one item off its queue before acting on it.
func (w *wire) advance(now time.Time) {
	w.settle(now)
	for {
		d, ok := w.packets.pop(now)
		if !ok {
			break
		}
		w.deliver(d)
	}
	for !w.isCut() {
		s, ok := w.segments.pop(now)
		if !ok {
			break
		}
		s.land(now)
	}
	w.arm(now)
}

// deliver hands a packet to its receiver, or drops it.
func (w *wire) deliver(d datagram) {
	receiver := w.to.packets[d.to.Port()]
	if w.isCut() || receiver == nil || !receiver.enqueue(d) {
		w.stats.PacketsDropped++
		return
	}
	w.stats.PacketsDelivered++
}

// arm sets the timer to the next moment at which this link has work: a packet
// due, a segment due, or the end of a cut that holds segments back.
func (w *wire) arm(now time.Time) {
	next, ok := w.packets.next()
	if due, some := w.segments.next(); some {
		if w.isCut() {
			due = w.cutUntil
		}
		if !ok || due.Before(next) {
			next, ok = due, true
		}
	}
	switch {
	case !ok:
		w.stop()
	case next.Equal(w.wake):
	case w.timer == nil:
		w.wake = next
		w.timer = time.AfterFunc(next.Sub(now), w.fire)
	default:
		w.wake = next
		w.timer.Reset(next.Sub(now))
	}
}

// fire runs when the timer fires. If a Reset came in between, it finds nothing due and sets the
// timer again.
func (w *wire) fire() {
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	if w.net.closed {
		return
	}
	w.wake = time.Time{}
	w.advance(time.Now())
}

func (w *wire) stop() {
	if w.timer != nil && !w.wake.IsZero() {
		w.timer.Stop()
	}
	w.wake = time.Time{}
}
