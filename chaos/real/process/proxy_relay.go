package process

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxStreams is the maximum number of connections of one relay. Further ones are closed at
	// once and counted.
	maxStreams = 512
	// largestPacket is the maximum size of a UDP packet, in bytes.
	largestPacket = 64 << 10
	// relayDial is the time that a relay has to connect to its node.
	relayDial = 5 * time.Second
)

// relay stands for a node towards all others: for gossip over UDP and TCP, and for calls from other
// nodes.
type relay struct {
	lines   *Lines
	region  string
	ip      netip.Addr     // its own address
	gossip  netip.AddrPort // address of the node's gossip
	packets *net.UDPConn
	streams []net.Listener
	open    atomic.Int64

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// add starts a relay at ip for the node at another address. Both listen on the same ports.
func (l *Lines) add(region string, ip, node netip.Addr) (err error) {
	r := &relay{lines: l, region: region, ip: ip, gossip: netip.AddrPortFrom(node, gossipPort),
		conns: map[net.Conn]struct{}{}}
	defer func() {
		if err != nil {
			r.close()
			err = fmt.Errorf("stand for the node at %s: %w", node, err)
		}
	}()
	if r.packets, err = net.ListenUDP("udp",
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, gossipPort))); err != nil {
		return err
	}
	for _, port := range []uint16{gossipPort, peerPort} {
		listener, err := net.Listen("tcp", netip.AddrPortFrom(ip, port).String())
		if err != nil {
			return err
		}
		r.streams = append(r.streams, listener)
	}
	l.mu.Lock()
	l.relays[node] = r
	l.mu.Unlock()
	l.work.Go(r.forwardPackets)
	for i, port := range []uint16{gossipPort, peerPort} {
		l.work.Go(func() { r.accept(r.streams[i], netip.AddrPortFrom(node, port)) })
	}
	return nil
}

// close ends all traffic through the relay.
func (r *relay) close() {
	if r.packets != nil {
		_ = r.packets.Close()
	}
	for _, s := range r.streams {
		_ = s.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c := range r.conns {
		_ = c.Close()
	}
}

// forwardPackets passes packets on to the node, from the sender's relay.
func (r *relay) forwardPackets() {
	buffer := make([]byte, largestPacket)
	for {
		n, from, err := r.packets.ReadFromUDPAddrPort(buffer)
		if err != nil {
			select {
			case <-r.lines.stop:
				return
			default:
				continue // the system reports that nobody received an earlier packet
			}
		}
		sender := r.lines.relayOf(from.Addr())
		if sender == nil {
			continue
		}
		way := r.lines.line(sender.region, r.region)
		way.wanted.Do(func() { r.lines.work.Go(func() { way.deliver(r.lines.stop) }) })
		way.send(append([]byte(nil), buffer[:n]...), func(b []byte) {
			_, _ = sender.packets.WriteToUDPAddrPort(b, r.gossip) // a packet may be lost
		})
	}
}

// accept joins each connection to the node.
func (r *relay) accept(l net.Listener, node netip.AddrPort) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the listener was closed
		}
		caller := r.lines.relayOf(c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())
		if caller == nil {
			_ = c.Close() // the caller is not a node of this fleet
			continue
		}
		if r.open.Add(1) > maxStreams {
			r.open.Add(-1)
			r.lines.line(caller.region, r.region).count(func(s *LineStats) { s.Crowded++ })
			_ = c.Close()
			continue
		}
		r.lines.work.Go(func() {
			defer r.open.Add(-1)
			r.join(c, caller, node)
		})
	}
}

// join carries a connection's data both ways until both sides have ended.
func (r *relay) join(c net.Conn, caller *relay, node netip.AddrPort) {
	there, back := r.lines.line(caller.region, r.region), r.lines.line(r.region, caller.region)
	if !r.hold(c) {
		return
	}
	sent, over := there.take(c, r.lines.stop)
	defer r.drop(c, sent)
	if !there.open(back, r.lines.stop, over) {
		return
	}
	dialer := net.Dialer{Timeout: relayDial, LocalAddr: &net.TCPAddr{IP: caller.ip.AsSlice()}}
	n, err := dialer.DialContext(context.Background(), "tcp", node.String())
	if err != nil {
		return // the caller finds its connection closed, as it would without a relay
	}
	if !r.hold(n) {
		return
	}
	answered, _ := back.take(n, r.lines.stop)
	defer r.drop(n, answered)
	var both sync.WaitGroup
	carry := func(way *line, to net.Conn, queue <-chan chunk) {
		way.give(to, queue, r.lines.stop)
		_ = to.Close() // its reader ends as well: neither side uses half-closed connections
	}
	both.Go(func() { carry(there, n, sent) })
	carry(back, c, answered)
	both.Wait()
}

// hold records a connection for close to end. If the relay was already closed, hold closes the
// connection and returns false.
func (r *relay) hold(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

// drop closes a connection, and waits until nobody reads from it any more.
func (r *relay) drop(c net.Conn, queue <-chan chunk) {
	_ = c.Close()
	for range queue {
		// Discard what is left of it.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}
