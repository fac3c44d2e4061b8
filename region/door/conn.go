package door

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// What connections may hold, in bytes on the wire. Memory is about as much, and up to eight times as much where a message
// comes in frames of one byte.
const (
	// maxHeldByOne is what one connection may hold: four of the largest messages.
	maxHeldByOne = 4 << 20
	// maxHeldByAll is what all connections of a door may hold. Beyond it those wait that hold more than an equal part of it,
	// and the others may still come up to theirs: at worst it is twice as much.
	maxHeldByAll = 16 << 20
	// alwaysHeld may be held by any connection, whatever the others hold.
	alwaysHeld = 32 << 10
	// StallTimeout is how long a connection may hold too much until it is closed. What it holds for longer than
	// ReceiveTimeout is no message under way but an answer that it does not read.
	StallTimeout = 15 * time.Second
	// stallPoll is how often a connection that waits looks again, and reviewEvery how often it is asked for how long.
	stallPoll   = 10 * time.Millisecond
	reviewEvery = time.Second
	// callOverhead is what a call is taken to have cost on the wire beside its message: the compressed headers. A call
	// whose headers are larger counts for them until they are forgotten.
	callOverhead = 128
)

// conn is a connection that came through a door. It counts, for a server whose Calls say what has become of the bytes, what
// its far end has the node hold.
type conn struct {
	net.Conn
	door   *Door
	ip     netip.Addr
	remote *remote
	closed chan struct{}
	once   sync.Once

	metered atomic.Bool // a gRPC server's Calls speak for the connection

	// Guarded by door.mu: bytes received lately that are not yet delivered as messages, and answers not yet written.
	// What came in is forgotten after one to two periods of ReceiveTimeout, when no call can hold it any more.
	recent, older, answers int64
	period                 time.Time // when recent becomes older
	tooMuchSince           time.Time // zero: it holds no more than it may
}

// remote is the address of a far end. Whoever is told the address of a call's peer finds the connection by it.
type remote struct {
	net.Addr
	conn *conn
}

func newConn(d *Door, raw net.Conn) *conn {
	c := &conn{Conn: raw, door: d, ip: addressOf(raw.RemoteAddr()), closed: make(chan struct{})}
	c.remote = &remote{raw.RemoteAddr(), c}
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

// await returns when the connection may be read from. It fails when the connection is closed, or should be.
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

// mayRead says whether the connection holds no more than it may.
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

// tooMuch says whether the connection holds more than it may. The caller holds door.mu.
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

// review closes the connections that have held too much for StallTimeout, and comes again as long as there may be any.
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

// count adds to what the connection holds. The caller holds door.mu, and adds it to its part.
func (c *conn) count(n int64) {
	c.door.held += n
	if !c.door.reviewing && n > 0 && c.tooMuch() {
		c.door.reviewing = true
		time.AfterFunc(reviewEvery, c.door.review)
	}
}

// sweep forgets, of all connections, what is too old to be held. The caller holds mu.
func (d *Door) sweep(now time.Time) {
	for c := range d.open {
		c.roll(now)
	}
}

// holds is what the connection is counted for. The caller holds door.mu.
func (c *conn) holds() int64 { return c.recent + c.older + c.answers }

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

// received counts bytes that came in.
func (c *conn) received(n int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.roll(time.Now())
	c.recent += int64(n)
	c.count(int64(n))
}

// delivered takes off what has become a message.
func (c *conn) delivered(n int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	fromRecent := min(int64(n), c.recent)
	fromOlder := min(int64(n)-fromRecent, c.older)
	c.recent -= fromRecent
	c.older -= fromOlder
	c.door.held -= fromRecent + fromOlder
}

// answered counts an answer that is to be written, and takes off what was. More is written than was counted, for frames and
// headers: there are never less than no answers.
func (c *conn) answered(n int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	n64 := max(int64(n), -c.answers)
	c.answers += n64
	c.count(n64)
}
