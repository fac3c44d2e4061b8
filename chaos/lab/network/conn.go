package network

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/quotad/quotad/region/base/link"
)

// window is the maximum number of bytes in one direction that were written and not yet read,
// including those on their way.
const window = 256 << 10

// half is one direction of a connection, guarded by the network's lock.
type half struct {
	wire    *wire
	other   *half     // the opposite direction of the same connection
	changed sync.Cond // wakes its reader and its writers

	arrived [][]byte // not yet read
	unread  int      // bytes written and not yet read, at most window
	eof     bool     // the writer's close has arrived
	deaf    bool     // the reader has closed: data that arrives is discarded
	reset   bool     // the writer has learned that the reader closed
	writing bool     // a Write is under way: others wait, so that they do not mix

	readUntil  link.Deadline
	writeUntil link.Deadline
}

// data is a piece of a stream on its way.
type data struct {
	half  *half
	bytes []byte
}

func (d data) land(time.Time) {
	h := d.half
	h.wire.stats.StreamBytes += uint64(len(d.bytes))
	if h.deaf {
		h.unread -= len(d.bytes)
	} else {
		h.arrived = append(h.arrived, d.bytes)
	}
	h.changed.Broadcast()
}

// fin is a close on its way. A connection has no half-close, so its arrival
// also tells that nobody reads the other direction any more.
type fin struct{ half *half }

func (f fin) land(time.Time) {
	f.half.eof = true
	f.half.changed.Broadcast()
	f.half.other.reset = true
	f.half.other.changed.Broadcast()
}

// conn is one end of a connection.
type conn struct {
	net           *Network
	local, remote *net.TCPAddr
	in, out       *half
	closed        bool // guarded by net.mu
}

// newConns makes the two ends of a connection.
func newConns(d *dialing) (client, server *conn) {
	n := d.there.net
	there, back := &half{wire: d.there}, &half{wire: d.back}
	there.other, back.other = back, there
	there.changed.L, back.changed.L = &n.mu, &n.mu
	local, remote := net.TCPAddrFromAddrPort(d.local), net.TCPAddrFromAddrPort(d.remote)
	client = &conn{net: n, local: local, remote: remote, in: back, out: there}
	server = &conn{net: n, local: remote, remote: local, in: there, out: back}
	n.conns[client] = struct{}{}
	n.conns[server] = struct{}{}
	return client, server
}

// Read waits for bytes that have arrived, or for the far end's close.
func (c *conn) Read(b []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	h := c.in
	for {
		switch {
		case c.closed:
			return 0, c.fail("read", net.ErrClosed)
		case h.readUntil.Passed:
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case len(h.arrived) > 0:
			return h.take(b), nil
		case h.eof:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

// take moves arrived bytes to b and makes room for the writer.
func (h *half) take(b []byte) int {
	n := 0
	for n < len(b) && len(h.arrived) > 0 {
		m := copy(b[n:], h.arrived[0])
		n += m
		if m < len(h.arrived[0]) {
			h.arrived[0] = h.arrived[0][m:]
			break
		}
		h.arrived[0] = nil
		h.arrived = h.arrived[1:]
	}
	h.unread -= n
	h.changed.Broadcast()
	return n
}

// Write sends bytes. It waits while 256 KiB are unread. Concurrent calls run one after the other.
func (c *conn) Write(b []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	h := c.out
	for h.writing {
		if err := c.writeError(); err != nil {
			return 0, err
		}
		h.changed.Wait()
	}
	h.writing = true
	defer func() {
		h.writing = false
		h.changed.Broadcast()
	}()
	for n := 0; ; {
		if err := c.writeError(); err != nil {
			return n, err
		}
		if n == len(b) {
			return n, nil
		}
		m := min(len(b)-n, window-h.unread)
		if m == 0 {
			h.changed.Wait()
			continue
		}
		h.unread += m
		h.wire.sendSegment(time.Now(), data{h, append([]byte(nil), b[n:n+m]...)})
		if n += m; n == len(b) {
			return n, nil
		}
	}
}

// writeError returns the reason why a Write cannot go on, nil if it can.
func (c *conn) writeError() error {
	switch {
	case c.closed:
		return c.fail("write", net.ErrClosed)
	case c.out.writeUntil.Passed:
		return c.fail("write", os.ErrDeadlineExceeded)
	case c.out.reset:
		return c.fail("write", os.NewSyscallError("write", syscall.EPIPE))
	}
	return nil
}

// Close ends both directions for this end at once. What was written still
// arrives, followed by the close. It is idempotent.
func (c *conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.end(time.Now())
	return nil
}

// end is Close with the lock held.
func (c *conn) end(now time.Time) {
	if c.closed {
		return
	}
	c.shut()
	delete(c.net.conns, c)
	for _, b := range c.in.arrived {
		c.in.unread -= len(b)
	}
	c.in.arrived = nil
	c.in.deaf = true
	c.out.wire.sendSegment(now, fin{c.out})
}

// shut ends this end without notifying the other.
func (c *conn) shut() {
	c.closed = true
	c.in.readUntil.Stop()
	c.out.writeUntil.Stop()
	c.in.changed.Broadcast()
	c.out.changed.Broadcast()
}

// LocalAddr returns a *net.TCPAddr.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns a *net.TCPAddr.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, true, true) }

// SetReadDeadline sets the time at which a waiting Read fails; the zero time means never.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, true, false) }

// SetWriteDeadline sets the time at which a waiting Write fails; the zero time means never.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, false, true) }

func (c *conn) setDeadlines(t time.Time, read, write bool) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	if read {
		c.in.readUntil.Set(t, &c.in.changed)
	}
	if write {
		c.out.writeUntil.Set(t, &c.out.changed)
	}
	return nil
}

func (c *conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
