package door

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what connections may hold, in bytes on the wire. Memory is about as much, and up to
// eight times as much if a message comes in frames of one byte.
const (
	// maxHeldByOne bounds what one connection may hold: four of the largest messages.
	maxHeldByOne = 4 << 20
	// maxHeldByAll bounds what all connections of a door may hold. Above it, a connection that
	// holds more than an equal part of it waits, and any other may still grow to that part. At
	// worst it is twice as much.
	maxHeldByAll = 16 << 20
	// alwaysHeld is what any connection may hold, whatever the others hold.
	alwaysHeld = 32 << 10
	// StallTimeout is how long a connection may hold too much before it is closed. What it holds
	// for longer than ReceiveTimeout is not a message under way but an answer that it does not
	// read.
	StallTimeout = 15 * time.Second
	// stallPoll is how often a waiting connection checks again. reviewEvery is how often the door
	// checks how long connections have held too much.
	stallPoll   = 10 * time.Millisecond
	reviewEvery = time.Second
	// maxWatches bounds the calls of one connection whose answers go on until it ends. Each of them
	// counts as watchBytes that the connection holds: about what such a call takes.
	maxWatches, watchBytes = 4, 16 << 10
	// callOverhead is the assumed size of a call on the wire beside its message: the compressed
	// headers. A call with larger headers is counted for them until they are forgotten.
	callOverhead = 128
	// smallCall is the assumed message of a call that is refused with its headers, or whose caller
	// has gone before it was received.
	smallCall = 64
)

// conn is a connection that came through a door. It counts what its far end makes the node hold.
// The server's Calls tell it what became of the bytes.
type conn struct {
	net.Conn
	door   *Door
	ip     netip.Addr
	remote *remote
	closed chan struct{}
	once   sync.Once

	metered atomic.Bool // a gRPC server's Calls report about this connection

	// door.mu guards these: bytes received lately that are not yet delivered as messages, and
	// answers not yet written. Received bytes are forgotten after one to two periods of
	// ReceiveTimeout, because then no call can hold them any more.
	recent, older, answers int64
	period                 time.Time // when recent becomes older
	tooMuchSince           time.Time // zero: it holds no more than it may
	watching               int       // calls of one message and many answers
	left                   bool      // it is closed: what becomes of its bytes no longer counts
}

// remote is the address of a far end. A handler that gets the peer's address of a call finds the
// connection by it.
type remote struct {
	net.Addr
	conn *conn
	text string // host and port
	host string
}

// String implements net.Addr.
func (r *remote) String() string { return r.text }

// HostAt returns HostOf the address of a connection.
func HostAt(a net.Addr) string {
	if r, ok := a.(*remote); ok {
		return r.host
	}
	return HostOf(a.String())
}

// HostOf returns who counts as one caller at an address, with or without a port: its host. Of an
// IPv6 address it is the network of 64 bits, because one machine may have all addresses of one.
func HostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		if host = networkOf(ip).String(); !ip.Is4In6() {
			host += "/64"
		}
	}
	return host
}

// networkOf returns an IPv4 address itself, and the first address of the network of 64 bits of an
// IPv6 one.
func networkOf(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if network, err := ip.Prefix(64); err == nil && ip.Is6() {
		return network.Addr()
	}
	return ip
}

func newConn(d *Door, raw net.Conn) *conn {
	c := &conn{Conn: raw, door: d, ip: addressOf(raw.RemoteAddr()), closed: make(chan struct{})}
	at := raw.RemoteAddr()
	c.remote = &remote{at, c, at.String(), HostOf(at.String())}
	return c
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.door.leave(c)
	})
	return c.Conn.Close()
}

// Read implements net.Conn. It waits while the connection holds too much.
func (c *conn) Read(b []byte) (int, error) {
	if c.metered.Load() {
		if err := c.await(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(b)
	if n > 0 && c.metered.Load() {
		c.received(n)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 && c.metered.Load() {
		c.answered(-n)
	}
	return n, err
}

// await waits until the connection may be read from. It fails if the connection is closed.
func (c *conn) await() error {
	if c.mayRead() {
		return nil
	}
	poll := time.NewTicker(stallPoll)
	defer poll.Stop()
	for {
		select {
		case <-c.closed:
			return net.ErrClosed
		case <-poll.C:
			if c.mayRead() {
				return nil
			}
		}
	}
}

// mayRead reports whether the connection holds no more than it may.
func (c *conn) mayRead() bool {
	d, now := c.door, time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	c.roll(now)
	if !c.tooMuch() {
		return true
	}
	d.sweep(now)
	return !c.tooMuch()
}

// tooMuch reports whether the connection holds more than it may. The caller holds door.mu.
func (c *conn) tooMuch() bool {
	d, own := c.door, c.holds()
	switch {
	case own <= alwaysHeld:
		return false
	case own > maxHeldByOne:
		return true
	}
	return d.held > maxHeldByAll && own > maxHeldByAll/int64(len(d.open))
}

// review closes the connections that have held too much for StallTimeout. It schedules itself again
// as long as any connection holds too much.
func (d *Door) review() {
	d.mu.Lock()
	now := time.Now()
	d.sweep(now)
	var stalled []*conn
	d.reviewing = false
	for c := range d.open {
		switch {
		case !c.tooMuch():
			c.tooMuchSince = time.Time{}
			continue
		case c.tooMuchSince.IsZero():
			c.tooMuchSince = now
		case now.Sub(c.tooMuchSince) >= StallTimeout:
			stalled = append(stalled, c)
		}
		d.reviewing = true
	}
	if d.reviewing {
		time.AfterFunc(reviewEvery, d.review)
	}
	d.mu.Unlock()
	for _, c := range stalled {
		d.stalled.Add(1)
		_ = c.Close()
	}
}

// count adds to what the door's connections hold. The caller holds door.mu, and adds to the
// connection's own counters.
func (c *conn) count(n int64) {
	c.door.held += n
	if !c.door.reviewing && n > 0 && c.tooMuch() {
		c.door.reviewing = true
		time.AfterFunc(reviewEvery, c.door.review)
	}
}

// sweep forgets the received bytes of all connections that are too old to be held. The caller holds
// mu.
func (d *Door) sweep(now time.Time) {
	for c := range d.open {
		c.roll(now)
	}
}

// holds returns the bytes for which the connection is counted. The caller holds door.mu.
func (c *conn) holds() int64 {
	return c.recent + c.older + c.answers + int64(c.watching)*watchBytes
}

// roll begins a new period if the last one is over. The caller holds door.mu.
func (c *conn) roll(now time.Time) {
	if now.Before(c.period) {
		return
	}
	gone := c.older
	if c.older, c.recent = c.recent, 0; now.Sub(c.period) >= ReceiveTimeout {
		gone, c.older = gone+c.older, 0
	}
	c.door.held -= gone
	c.period = now.Add(ReceiveTimeout)
}

// received counts bytes that were received.
func (c *conn) received(n int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	if c.left {
		return
	}
	c.roll(time.Now())
	c.recent += int64(n)
	c.count(int64(n))
}

// delivered subtracts bytes that have become a message.
func (c *conn) delivered(n int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	if c.left {
		return
	}
	fromRecent := min(int64(n), c.recent)
	fromOlder := min(int64(n)-fromRecent, c.older)
	c.recent -= fromRecent
	c.older -= fromOlder
	c.door.held -= fromRecent + fromOlder
}

// undelivered returns how many bytes were received that are no messages yet.
func (c *conn) undelivered() int64 {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	return c.recent + c.older
}

// answered counts an answer that is to be written, or with a negative n one that was written. More
// bytes are written than were counted, for frames and headers. So answers never falls below 0.
func (c *conn) answered(n int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	if c.left {
		return
	}
	n64 := max(int64(n), -c.answers)
	c.answers += n64
	c.count(n64)
}

// dropped subtracts the bytes of a small call whose message is not taken: gRPC discards it.
func (c *conn) dropped() {
	if c != nil {
		c.delivered(callOverhead + smallCall)
	}
}

// watches lets in a call whose answers go on until it ends. It returns false if the connection has
// too many of them.
func (c *conn) watches() bool {
	if c == nil {
		return true
	}
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	if c.watching >= maxWatches {
		c.door.unwatched.Add(1)
		return false
	}
	c.watching++
	if !c.left {
		c.count(watchBytes)
	}
	return true
}

// watched ends a call that watches let in.
func (c *conn) watched() {
	if c == nil {
		return
	}
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.watching--
	if !c.left {
		c.count(-watchBytes)
	}
}
