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

// maxInOneWrite bounds the bytes that are given to the system at once, and so what a cut that begins meanwhile comes
// too late for.
const maxInOneWrite = 32 << 10

// gated is a stream through a gate.
type gated struct {
	net.Conn
	gate *Gate
	ip   netip.Addr // of the far end

	reading    sync.Mutex // of several Reads one follows the other; guards what arrived
	arrived    []byte     // arrived during a cut
	arrivedErr error      // the end of the stream, which did

	writing sync.Mutex // of several Writes one follows the other

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

// Read waits for bytes, and for the end of a cut.
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

// isOurs says whether an error came from this end, and not over the network.
func isOurs(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed)
}

// ownError says that the connection is closed where the socket beneath it is not yet.
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

// Write writes, once no cut is in its way.
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

// stopped says why a call must not wait any longer; the gate's lock is held.
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

// Close ends the connection for this end at once. The far end sees it after the cut, if there is one. It is idempotent.
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
		_ = c.Conn.SetDeadline(time.Unix(1, 0)) // wakes those who read or write; fails once the cut has ended
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

// setDeadline sets a deadline for those who wait for a cut to end, and, beneath, for those who wait for the system.
func (c *gated) setDeadline(d *Deadline, t time.Time, beneath func(time.Time) error) error {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	d.Set(t, &c.gate.changed)
	return beneath(t)
}
