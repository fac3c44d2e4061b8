package network

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// backlogLimit bounds the connections that wait for Accept; dials beyond it
// are refused.
const backlogLimit = 128

// listener is a host's stream listener.
type listener struct {
	host *Host
	at   netip.AddrPort

	// Guarded by host.net.mu.
	ready   sync.Cond
	backlog []*conn
	closed  bool
}

// enqueue adds a connection for Accept; the caller has checked the limit.
func (l *listener) enqueue(c *conn) {
	l.backlog = append(l.backlog, c)
	l.ready.Signal()
}

// Accept waits for a connection, and fails with net.ErrClosed once the
// listener is closed.
func (l *listener) Accept() (net.Conn, error) {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	for !l.closed && len(l.backlog) == 0 {
		l.ready.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	c := l.backlog[0]
	l.backlog[0] = nil
	l.backlog = l.backlog[1:]
	return c, nil
}

// Close ends Accept and the connections that wait for it. It is idempotent.
func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return nil
	}
	waiting := l.backlog
	l.shut()
	delete(l.host.listeners, l.at.Port())
	for _, c := range waiting {
		c.end(time.Now())
	}
	return nil
}

// shut ends the listener without notifying the dialers.
func (l *listener) shut() {
	l.closed = true
	l.backlog = nil
	l.ready.Broadcast()
}

// Addr returns a *net.TCPAddr.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }
