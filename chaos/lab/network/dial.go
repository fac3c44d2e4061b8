package network

import (
	"net/netip"
	"os"
	"syscall"
	"time"
)

// dialing is a connection attempt. As a segment it is the first half of the
// handshake, on its way to the listener.
type dialing struct {
	there, back   *wire
	local, remote netip.AddrPort
	done          chan error // receives the outcome; buffered

	// Guarded by the network's lock.
	client    *conn // once the listener has answered
	abandoned bool
}

// land asks the listener. The accepted end exists from here on, half a round
// trip before the dialer knows of it.
func (d *dialing) land(now time.Time) {
	d.there.stats.Dials++
	if d.abandoned {
		return
	}
	l := d.there.to.listeners[d.remote.Port()]
	if l == nil || len(l.backlog) >= backlogLimit {
		d.back.sendSegment(now, answer{d, os.NewSyscallError("connect", syscall.ECONNREFUSED)})
		return
	}
	client, server := newConns(d)
	d.client = client
	d.back.sendSegment(now, answer{d, nil})
	l.enqueue(server)
}

// abandon gives the attempt up. A listener that has accepted it already sees
// the connection end.
func (d *dialing) abandon() {
	d.there.net.mu.Lock()
	defer d.there.net.mu.Unlock()
	d.abandoned = true
	if d.client != nil {
		d.client.end(time.Now())
	}
}

// answer is the second half of the handshake, on its way to the dialer.
type answer struct {
	d   *dialing
	err error
}

func (a answer) land(time.Time) { a.d.done <- a.err }
