package link

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// maxInOneWrite bounds the bytes given to the system in one write. A cut that begins during the
// write comes too late for them.
const maxInOneWrite = 32 << 10

// gated is a stream through a gate.
type gated struct {
	net.Conn
	gate *Gate
	ip   netip.Addr // of the far end

	// Held during a Read, so that Reads run one after the other. It guards arrived and arrivedErr.
	reading    sync.Mutex
	arrived    []byte // bytes that arrived during a cut
	arrivedErr error  // the end of the stream, if it arrived during a cut

	// Held during a Write, so that Writes run one after the other.
	writing sync.Mutex

	// Guarded by gate.mu.
	closed                bool
	readUntil, writeUntil Deadline
}

func (g *Gate) gated(c net.Conn) *gated {
	ip, _ := addressOf(c.RemoteAddr()) // no address: never cut
	return &gated{Conn: c, gate: g, ip: ip}
}

// addressOf returns the IP address of a TCP or UDP address.
func addressOf(a net.Addr) (netip.Addr, bool) {
	at, ok := a.(interface{ AddrPort() netip.AddrPort })
	if !ok {
		return netip.Addr{}, false
	}
	return plain(at.AddrPort().Addr()), true
}

// Read waits for bytes and, if there is a cut, for its end.
func (c *gated) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if err := c.gate.pass(c.ip, In, c.readStopped); err != nil {
		return 0, err
	}
	if len(c.arrived) == 0 && c.arrivedErr == nil {
		n, err := c.Conn.Read(b)
		if isOurs(err) || !c.gate.IsCut(c.ip, In) {
			return n, c.ownError(err)
		}
		c.arrived, c.arrivedErr = bytes.Clone(b[:n]), err
		if err := c.gate.pass(c.ip, In, c.readStopped); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.arrived)
	c.arrived = c.arrived[n:]
	if len(c.arrived) > 0 {
		return n, nil
	}
	err := c.arrivedErr
	c.arrivedErr = nil
	return n, err
}

// isOurs reports whether an error comes from this end, not from the network.
func isOurs(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed)
}

// ownError returns err, or net.ErrClosed if this end has closed the connection while the socket
// below it is still open.
func (c *gated) ownError(err error) error {
	if !isOurs(err) {
		return err
	}
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.closed {
		return c.fail("use", net.ErrClosed)
	}
	return err
}

// Write writes when the far end is not cut.
func (c *gated) Write(b []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for {
		if err := c.gate.pass(c.ip, Out, c.writeStopped); err != nil {
			return written, err
		}
		part := b[written:min(len(b), written+maxInOneWrite)]
		n, err := c.Conn.Write(part)
		if written += n; err != nil || written == len(b) {
			return written, c.ownError(err)
		}
	}
}

func (c *gated) readStopped() error { return c.stopped("read", &c.readUntil) }

func (c *gated) writeStopped() error { return c.stopped("write", &c.writeUntil) }

// stopped returns why a call must not wait any longer. The caller holds the gate's lock.
func (c *gated) stopped(op string, until *Deadline) error {
	switch {
	case c.closed:
		return c.fail(op, net.ErrClosed)
	case until.Passed:
		return c.fail(op, os.ErrDeadlineExceeded)
	}
	return nil
}

func (c *gated) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// Close ends the connection for this end at once. If there is a cut, the far end sees it after the
// cut. Close is idempotent.
func (c *gated) Close() error {
	g := c.gate
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		return nil
	}
	c.closed = true
	c.readUntil.Stop()
	c.writeUntil.Stop()
	unseen := g.isCut(c.ip, Out)
	if unseen {
		g.closed[c] = c.ip
	}
	g.changed.Broadcast()
	g.mu.Unlock()
	if unseen {
		// Wake Reads and Writes under way. This fails once the cut has ended, which does no harm.
		_ = c.Conn.SetDeadline(time.Unix(1, 0))
		return nil
	}
	return c.Conn.Close()
}

// SetDeadline implements net.Conn.
func (c *gated) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *gated) SetReadDeadline(t time.Time) error {
	return c.setDeadline(&c.readUntil, t, c.Conn.SetReadDeadline)
}

// SetWriteDeadline implements net.Conn.
func (c *gated) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(&c.writeUntil, t, c.Conn.SetWriteDeadline)
}

// setDeadline sets a deadline for calls that wait for a cut to end and, below, for calls that wait
// for the system.
func (c *gated) setDeadline(d *Deadline, t time.Time, beneath func(time.Time) error) error {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	d.Set(t, &c.gate.changed)
	return beneath(t)
}
