package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// largestPacket bounds the packets that are taken in, in bytes; a larger one is dropped and
// counted. memberlist makes no packet beyond packetSize and a checksum. It keeps up to 2,048
// packets until it has processed the messages in them.
const largestPacket = 4 << 10

// transport feeds memberlist from a packet connection, a listener and a dial function. It
// implements memberlist.NodeAwareTransport.
type transport struct {
	packets   net.PacketConn
	streams   net.Listener
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	advertise netip.AddrPort
	seal      seal
	panics    Recoverer

	packetCh chan *memberlist.Packet
	streamCh chan net.Conn
	ctx      context.Context // ends with Shutdown
	cancel   context.CancelFunc
	readers  sync.WaitGroup

	mu       sync.Mutex
	open     map[*stream]struct{} // nil after Shutdown
	asking   int                  // how many of them others opened
	crowds   map[netip.Addr]*crowd
	held     int       // bytes that streams have brought and that are not processed
	lastSent time.Time // when the last packet went out; zero: none did

	packetsIn, packetsOut, streamsIn, streamsOut atomic.Uint64 // bytes
	refused                                      atomic.Uint64 // streams
	// Bytes of streams that memberlist has read.
	handedOn atomic.Uint64

	compressed, malformed, tooLarge, unsealed, crowded atomic.Uint64 // frames
}

func newTransport(c Config, keys *memberlist.Keyring) *transport {
	t := &transport{
		seal:      seal{keys},
		panics:    c.Recovered,
		packets:   c.Packets,
		streams:   c.Streams,
		dial:      c.Dial,
		advertise: c.Advertise,
		packetCh:  make(chan *memberlist.Packet),
		streamCh:  make(chan net.Conn),
		open:      make(map[*stream]struct{}),
		crowds:    make(map[netip.Addr]*crowd),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.readers.Go(t.readPackets)
	t.readers.Go(t.acceptStreams)
	return t
}

// FinalAdvertiseAddr returns where the others reach this node.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.advertise.Addr().AsSlice(), int(t.advertise.Port()), nil
}

// WriteTo sends a packet to ip:port. After Shutdown it fails with a bare net.ErrClosed: memberlist
// would take a *net.OpError for a fault of the far end and go on with the probe.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	if !t.noteSent(now) {
		return time.Time{}, net.ErrClosed
	}
	n, err := t.packets.WriteTo(b, net.UDPAddrFromAddrPort(to))
	t.packetsOut.Add(uint64(n))
	return now, err
}

// noteSent notes that a packet goes out now. It returns false after Shutdown.
func (t *transport) noteSent(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		return false
	}
	t.lastSent = now
	return true
}

// quietSince returns when the last packet went out. It does not change after Shutdown.
func (t *transport) quietSince() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lastSent
}

// WriteToAddress sends a packet; the name is not needed.
func (t *transport) WriteToAddress(b []byte, addr memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, addr.Addr)
}

// PacketCh returns the channel on which packets arrive.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }

// StreamCh returns the channel on which streams arrive.
func (t *transport) StreamCh() <-chan net.Conn { return t.streamCh }

// DialTimeout opens a stream to ip:port within the timeout, or fails as soon as the transport is
// shut down.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	conn, err := t.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s, err := t.track(conn, true)
	if err != nil {
		return nil, fmt.Errorf("stream to %s: %w", addr, err)
	}
	// Until memberlist sets a deadline of its own.
	return s, s.SetDeadline(time.Now().Add(timeout))
}

// DialAddressTimeout opens a stream; the name is not needed.
func (t *transport) DialAddressTimeout(addr memberlist.Address, timeout time.Duration) (net.Conn,
	error) {
	return t.DialTimeout(addr.Addr, timeout)
}

// Shutdown closes everything and waits for the readers. It is idempotent.
func (t *transport) Shutdown() error {
	t.cancel()
	t.mu.Lock()
	open := t.open
	t.open = nil
	t.mu.Unlock()
	errs := []error{ignoreClosed(t.packets.Close()), ignoreClosed(t.streams.Close())}
	for s := range open {
		s.Conn.Close()
	}
	t.readers.Wait()
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// readPackets passes packets on until the transport is shut down.
func (t *transport) readPackets() {
	buf := make([]byte, largestPacket+1)
	for pause := (pause{}); ; {
		n, from, err := t.packets.ReadFrom(buf)
		if err != nil {
			if !pause.after(t.ctx, err) {
				return
			}
			continue
		}
		pause.reset()
		t.packetsIn.Add(uint64(n))
		if !t.admits(buf[:n]) {
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from,
			Timestamp: time.Now()}
		select {
		case t.packetCh <- p:
		case <-t.ctx.Done():
			return
		}
	}
}

// admits reports whether a packet is one that a node sends, and counts it if not.
func (t *transport) admits(b []byte) (ok bool) {
	defer t.panics.recover()
	if len(b) > largestPacket {
		t.tooLarge.Add(1)
		return false
	}
	plain, err := t.seal.openPacket(b)
	if err == nil {
		err = checkPacket(plain)
	}
	return !t.refuse(err)
}

// refuse reports whether err means that a frame is none that a node sends, and counts it if so. Errors
// of the network do not count.
func (t *transport) refuse(err error) bool {
	for _, kind := range []struct {
		err   error
		count *atomic.Uint64
	}{{errCompressed, &t.compressed}, {errMalformed, &t.malformed}, {errTooLarge, &t.tooLarge},
		{errUnsealed, &t.unsealed}, {errCrowded, &t.crowded}} {
		if errors.Is(err, kind.err) {
			kind.count.Add(1)
			return true
		}
	}
	return false
}

// acceptStreams passes streams on until the transport is shut down.
func (t *transport) acceptStreams() {
	for pause := (pause{}); ; {
		conn, err := t.streams.Accept()
		if err != nil {
			if !pause.after(t.ctx, err) {
				return
			}
			continue
		}
		pause.reset()
		s, err := t.track(conn, false)
		if err != nil {
			t.refused.Add(1)
			continue
		}
		select {
		case t.streamCh <- s:
		case <-t.ctx.Done():
			s.Close()
			return
		}
	}
}

// pause grows from 5 ms to 1 s while a socket keeps failing, for example because no file
// descriptors are left.
type pause struct{ d time.Duration }

// after waits for the pause, and reports whether to try again: not if the socket was closed or ctx has
// ended.
func (p *pause) after(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return false
	}
	p.d = min(max(5*time.Millisecond, 2*p.d), time.Second)
	select {
	case <-time.After(p.d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *pause) reset() { p.d = 0 }
