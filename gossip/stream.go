package gossip

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

const (
	// maxStreams bounds the open streams that others opened, and separately those that this node
	// opened. One beyond it is closed. Each costs a goroutine for at most three stream timeouts.
	maxStreams = 256
	// maxStreamsFrom bounds the open streams of one address, so that one host cannot take all.
	maxStreamsFrom = 64
	// maxHeld bounds the bytes that all streams together have brought and that are not processed
	// yet, and maxHeldFrom those of one address. A stream that would bring more is closed. The
	// state that it carries spreads by packets meanwhile, and with the next exchange. memberlist
	// and Merge need some six times as much memory: about 150 MB.
	maxHeld     = 24 << 20
	maxHeldFrom = 16 << 20
	// heldStep is the size of the steps, in bytes, in which streams ask for room.
	heldStep = 64 << 10
)

// errCrowded is the reason for closing a stream that would bring more than there is room for.
var errCrowded = errors.New("the streams hold as much as they may")

// stream is a connection that Shutdown closes and whose bytes are counted. memberlist reads nothing
// of it before everything that the other side sends has arrived and has passed the check.
type stream struct {
	net.Conn
	t      *transport
	answer bool       // this node opened it, and reads an answer
	from   netip.Addr // the host that opened it; not set if this node did

	// Read is called by one goroutine at a time.
	checked bool
	frame   []byte // all that has arrived
	pos     int    // how much of frame the check has taken
	given   int    // how much of frame memberlist has read
	err     error  // why nothing follows

	mu     sync.Mutex
	room   int // bytes booked with the transport
	closed bool
}

// Read implements net.Conn.
func (s *stream) Read(b []byte) (int, error) {
	if !s.checked {
		s.checked = true
		s.err = s.check()
	}
	if s.err != nil {
		return 0, s.err
	}
	if s.given == len(s.frame) {
		return 0, io.EOF
	}
	n := copy(b, s.frame[s.given:])
	s.given += n
	s.t.handedOn.Add(uint64(n))
	return n, nil
}

// check waits for everything that the other side sends, and checks it. It closes a stream that it
// refuses: otherwise memberlist would answer with the reason.
func (s *stream) check() (err error) {
	err = errMalformed // the result if the check panics
	defer func() {
		if err == nil {
			s.frame = s.frame[:s.pos]
			return
		}
		if refused := s.t.refuse(err); refused {
			s.Close()
		}
		s.frame = nil
	}()
	defer s.t.panics.recover()
	err = s.t.seal.checkStream(s, s.answer)
	return err
}

// take implements source: it reads from the connection and keeps what it has read.
func (s *stream) take(n int) ([]byte, error) {
	if n < 0 || n > maxStream-s.pos {
		return nil, fmt.Errorf("%w: more than %d bytes in one stream", errTooLarge, maxStream)
	}
	for len(s.frame)-s.pos < n {
		if err := s.fill(s.pos + n - len(s.frame)); err != nil {
			return nil, err
		}
	}
	b := s.frame[s.pos : s.pos+n]
	s.pos += n
	return b, nil
}

// fill reads once, at most a step, so that a sender that announces much and sends little costs
// little.
func (s *stream) fill(want int) error {
	const least = 4 << 10 // mostly a whole question or answer
	size := min(max(want, least), heldStep)
	if err := s.book(len(s.frame) + size); err != nil {
		return err
	}
	if cap(s.frame)-len(s.frame) < size {
		grown := make([]byte, len(s.frame), max(2*cap(s.frame), len(s.frame)+size))
		copy(grown, s.frame)
		s.frame = grown
	}
	n, err := s.Conn.Read(s.frame[len(s.frame) : len(s.frame)+size])
	s.t.streamsIn.Add(uint64(n))
	s.frame = s.frame[:len(s.frame)+n]
	if n > 0 {
		return nil
	}
	return err
}

// book asks the transport for room for size bytes in all, in steps.
func (s *stream) book(size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	more := (size+heldStep-1)/heldStep*heldStep - s.room
	if more <= 0 {
		return nil
	}
	if !s.t.takeRoom(s, more) {
		return errCrowded
	}
	s.room += more
	return nil
}

// Write implements net.Conn. It closes the stream when it fails.
func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.t.streamsOut.Add(uint64(n))
	if err != nil {
		s.Close()
	}
	return n, err
}

// Close implements net.Conn.
func (s *stream) Close() error {
	s.mu.Lock()
	room := s.room
	s.room, s.closed = 0, true
	s.mu.Unlock()
	s.t.forget(s, room)
	return s.Conn.Close()
}

// crowd counts the open streams of one host, and the bytes that they hold.
type crowd struct{ streams, held int }

// track enters a connection into the transport's lists, or closes it. answer says that this node
// opened it.
func (t *transport) track(conn net.Conn, answer bool) (*stream, error) {
	s := &stream{Conn: conn, t: t, answer: answer}
	if !answer {
		s.from = hostOf(conn.RemoteAddr())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.crowds[s.from]
	switch {
	case t.open == nil:
		conn.Close()
		return nil, net.ErrClosed
	case !answer && t.asking >= maxStreams,
		!answer && of != nil && of.streams >= maxStreamsFrom,
		answer && len(t.open)-t.asking >= maxStreams:
		conn.Close()
		return nil, errors.New("too many streams are open already")
	}
	if of == nil {
		of = &crowd{}
		t.crowds[s.from] = of
	}
	of.streams++
	if !answer {
		t.asking++
	}
	t.open[s] = struct{}{}
	return s, nil
}

// takeRoom books n bytes that a stream brings. It returns false if there is no room.
func (t *transport) takeRoom(s *stream, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.crowds[s.from]
	if of == nil || t.held+n > maxHeld || of.held+n > maxHeldFrom {
		return false
	}
	t.held += n
	of.held += n
	return true
}

// forget removes a stream from the transport's lists and frees its room.
func (t *transport) forget(s *stream, room int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.crowds[s.from]
	if of != nil && room > 0 {
		t.held -= room
		of.held -= room
	}
	if _, open := t.open[s]; !open {
		return
	}
	delete(t.open, s)
	if !s.answer {
		t.asking--
	}
	if of.streams--; of.streams == 0 && of.held == 0 {
		delete(t.crowds, s.from)
	}
}

// hostOf returns the IP address that a stream comes from.
func hostOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
