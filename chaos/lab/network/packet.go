package network

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/quotad/quotad/region/base/link"
)

const (
	// receiveQueue bounds the packets that wait to be read; later ones are
	// dropped.
	receiveQueue = 1024
	// maxPayload is the largest packet, as for UDP over IPv4, in bytes.
	maxPayload = 65507
)

// packetConn is a host's packet connection.
type packetConn struct {
	host *Host
	at   netip.AddrPort

	// Guarded by host.net.mu.
	ready      sync.Cond
	received   []datagram
	readUntil  link.Deadline
	writeUntil link.Deadline
	closed     bool
}

// enqueue takes a packet for ReadFrom; false if the queue is full.
func (c *packetConn) enqueue(d datagram) bool {
	if len(c.received) >= receiveQueue {
		return false
	}
	c.received = append(c.received, d)
	c.ready.Signal()
	return true
}

// ReadFrom waits for a packet and copies it to b; what does not fit is lost.
// The address is a *net.UDPAddr.
func (c *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, nil, c.fail("read", nil, net.ErrClosed)
		case c.readUntil.Passed:
			return 0, nil, c.fail("read", nil, os.ErrDeadlineExceeded)
		case len(c.received) > 0:
			d := c.received[0]
			c.received[0] = datagram{}
			c.received = c.received[1:]
			return copy(b, d.payload), net.UDPAddrFromAddrPort(d.from), nil
		}
		c.ready.Wait()
	}
}

// WriteTo sends a packet of at most 65,507 bytes. It never waits, and does not
// tell whether the packet arrives.
func (c *packetConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	to, err := packetAddr(addr)
	if err != nil {
		return 0, c.fail("write", addr, err)
	}
	if len(b) > maxPayload {
		return 0, c.fail("write", addr, os.NewSyscallError("sendto", syscall.EMSGSIZE))
	}
	d := datagram{from: c.at, to: to, payload: append([]byte(nil), b...)}

	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case c.closed:
		return 0, c.fail("write", addr, net.ErrClosed)
	case c.writeUntil.Passed:
		return 0, c.fail("write", addr, os.ErrDeadlineExceeded)
	}
	if h := n.byIP[to.Addr()]; h != nil {
		n.wire(c.host, h).sendPacket(time.Now(), d)
	}
	return len(b), nil
}

// packetAddr reads the address of a packet.
func packetAddr(addr net.Addr) (netip.AddrPort, error) {
	u, ok := addr.(*net.UDPAddr)
	if !ok || u == nil {
		return netip.AddrPort{}, fmt.Errorf("destination is a %T, want a *net.UDPAddr", addr)
	}
	to := u.AddrPort()
	return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), nil
}

// Close ends ReadFrom and WriteTo. Packets sent before still arrive. It is
// idempotent.
func (c *packetConn) Close() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if !c.closed {
		c.shut()
		delete(c.host.packets, c.at.Port())
	}
	return nil
}

func (c *packetConn) shut() {
	c.closed = true
	c.received = nil
	c.readUntil.Stop()
	c.writeUntil.Stop()
	c.ready.Broadcast()
}

// LocalAddr returns a *net.UDPAddr.
func (c *packetConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(c.at) }

// SetDeadline sets both deadlines.
func (c *packetConn) SetDeadline(t time.Time) error { return c.setDeadlines(t, true, true) }

// SetReadDeadline ends a ReadFrom that waits beyond t; the zero time means
// never.
func (c *packetConn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, true, false) }

// SetWriteDeadline refuses every WriteTo after t; the zero time means never.
func (c *packetConn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, false, true) }

func (c *packetConn) setDeadlines(t time.Time, read, write bool) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return c.fail("set", nil, net.ErrClosed)
	}
	if read {
		c.readUntil.Set(t, &c.ready)
	}
	if write {
		c.writeUntil.Set(t, &c.ready)
	}
	return nil
}

func (c *packetConn) fail(op string, to net.Addr, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: c.LocalAddr(), Addr: to, Err: err}
}
