package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// firstEphemeral is the first of the ports that are given out when a caller asks for any port.
const firstEphemeral = 32768

// Host is one place in a network. Its methods are safe for concurrent use.
type Host struct {
	net  *Network
	name string
	ip   netip.Addr

	// Guarded by net.mu.
	listeners map[uint16]*listener
	packets   map[uint16]*packetConn
	ephemeral uint16 // the next port to try
}

// Name returns the name under which the host was made.
func (h *Host) Name() string { return h.name }

// IP returns the host's address in the network, 10.77.x.y. It exists only inside this process.
func (h *Host) IP() netip.Addr { return h.ip }

// Listen opens a stream listener on a port of the host, 1 to 65535, or on a
// free one if port is 0. It fails if the port is taken or the network closed.
func (h *Host) Listen(port int) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	at, err := h.bind("tcp", port, func(p uint16) bool { return h.listeners[p] != nil })
	if err != nil {
		return nil, err
	}
	l := &listener{host: h, at: at}
	l.ready.L = &h.net.mu
	h.listeners[at.Port()] = l
	return l, nil
}

// ListenPacket opens a packet connection on a port of the host, 1 to 65535, or on a free one if
// port is 0. It fails if the port is taken or the network closed.
func (h *Host) ListenPacket(port int) (net.PacketConn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	at, err := h.bind("udp", port, func(p uint16) bool { return h.packets[p] != nil })
	if err != nil {
		return nil, err
	}
	c := &packetConn{host: h, at: at}
	c.ready.L = &h.net.mu
	h.packets[at.Port()] = c
	return c, nil
}

// bind finds the port to listen on.
func (h *Host) bind(network string, port int, taken func(uint16) bool) (netip.AddrPort, error) {
	fail := func(err error) (netip.AddrPort, error) {
		return netip.AddrPort{}, &net.OpError{Op: "listen", Net: network,
			Err: fmt.Errorf("host %q (%s), port %d: %w", h.name, h.ip, port, err)}
	}
	switch {
	case h.net.closed:
		return fail(net.ErrClosed)
	case port < 0 || port > 65535:
		return fail(&net.AddrError{Err: "port outside 0 to 65535", Addr: strconv.Itoa(port)})
	case port == 0:
		for range 1<<16 - firstEphemeral {
			if p := h.nextPort(); !taken(p) {
				return netip.AddrPortFrom(h.ip, p), nil
			}
		}
		return fail(os.NewSyscallError("bind", syscall.EADDRNOTAVAIL))
	case taken(uint16(port)):
		return fail(os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	return netip.AddrPortFrom(h.ip, uint16(port)), nil
}

func (h *Host) nextPort() uint16 {
	p := h.ephemeral
	if h.ephemeral++; h.ephemeral == 0 {
		h.ephemeral = firstEphemeral
	}
	return p
}

// DialContext opens a stream ("tcp" or "tcp4") to host:port, where host is the
// address or the name of a host of the same network. It takes a round trip; on
// a link that is cut it hangs until ctx ends. It has the signature that
// grpc.WithContextDialer (with the network bound), go-redis and net/http want.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	local := &net.TCPAddr{IP: h.ip.AsSlice()}
	fail := func(remote net.Addr, err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Source: local, Addr: remote, Err: err}
	}
	if network != "tcp" && network != "tcp4" {
		return fail(nil, net.UnknownNetworkError(network))
	}
	if err := ctx.Err(); err != nil {
		return fail(nil, err)
	}
	to, port, err := h.net.resolve(address)
	if err != nil {
		return fail(nil, err)
	}
	d, err := h.startDial(to, port)
	if err != nil {
		return fail(nil, err)
	}
	remote := net.TCPAddrFromAddrPort(d.remote)
	select {
	case err := <-d.done:
		if err != nil {
			return fail(remote, err)
		}
		return d.client, nil
	case <-ctx.Done():
		d.abandon()
		return fail(remote, ctx.Err())
	case <-h.net.done:
		return fail(remote, net.ErrClosed)
	}
}

// resolve finds the host and port that an address names.
func (n *Network) resolve(address string) (*Host, uint16, error) {
	name, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, 0, &net.AddrError{Err: "port is not a number from 0 to 65535", Addr: address}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if ip, err := netip.ParseAddr(name); err == nil {
		h = n.byIP[ip.Unmap()]
	}
	if h == nil {
		return nil, 0, &net.DNSError{Err: "no such host in this network; make it with Network.Host first", Name: name, IsNotFound: true}
	}
	return h, uint16(port), nil
}

// startDial sends the first half of the handshake.
func (h *Host) startDial(to *Host, port uint16) (*dialing, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.net.closed {
		return nil, net.ErrClosed
	}
	d := &dialing{
		there:  h.net.wire(h, to),
		back:   h.net.wire(to, h),
		local:  netip.AddrPortFrom(h.ip, h.nextPort()),
		remote: netip.AddrPortFrom(to.ip, port),
		done:   make(chan error, 1),
	}
	d.there.sendSegment(time.Now(), d)
	return d, nil
}
