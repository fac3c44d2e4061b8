package link

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// Dialer returns a dial function. While the address is cut, it hangs until the cut or the context
// ends, or the dialer's timeout passes. A dial needs both directions, so a cut of one direction
// stops it as well.
func (g *Gate) Dialer(d net.Dialer) func(ctx context.Context, network, address string) (net.Conn,
	error) {
	inner := d.ControlContext
	// The dialer calls this for each address that a name resolves to, before it sends anything.
	d.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err == nil {
			if err := g.await(ctx, plain(at.Addr())); err != nil {
				return err
			}
		}
		if inner != nil {
			return inner(ctx, network, address, c)
		}
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d.Timeout)
			defer cancel()
		}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := g.gated(conn)
		// If the address was cut meanwhile, the far end's answer would have been lost.
		if err := g.await(ctx, c.ip); err != nil {
			_ = c.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Source: c.LocalAddr(),
				Addr: c.RemoteAddr(), Err: err}
		}
		return c, nil
	}
}

// await waits until an address is not cut in any direction, or ctx ends.
func (g *Gate) await(ctx context.Context, ip netip.Addr) error {
	defer context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})()
	return g.pass(ip, Both, ctx.Err)
}

// Listener returns a listener whose streams go through the gate. A stream from a cut address is
// accepted and stalls.
func (g *Gate) Listener(l net.Listener) net.Listener { return gatedListener{l, g} }

type gatedListener struct {
	net.Listener
	gate *Gate
}

// Accept implements net.Listener.
func (l gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.gate.gated(c), nil
}

// PacketConn returns a packet connection that loses packets to and from cut addresses.
func (g *Gate) PacketConn(c net.PacketConn) net.PacketConn { return gatedPackets{c, g} }

type gatedPackets struct {
	net.PacketConn
	gate *Gate
}

// ReadFrom implements net.PacketConn.
func (p gatedPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := p.PacketConn.ReadFrom(b)
		if err != nil || !p.gate.drops(from, In) {
			return n, from, err
		}
	}
}

// WriteTo implements net.PacketConn. A lost packet counts as sent.
func (p gatedPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	if p.gate.drops(to, Out) {
		return len(b), nil
	}
	return p.PacketConn.WriteTo(b, to)
}

// drops reports whether a packet is lost, and counts it if so.
func (g *Gate) drops(a net.Addr, way Direction) bool {
	ip, ok := addressOf(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !ok || !g.isCut(ip, way) {
		return false
	}
	g.stats.PacketsDropped++
	return true
}
