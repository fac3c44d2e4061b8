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
	// maxStreams bounds the streams open at once that others opened, and again those that this
	// node opened; one beyond it is closed. Each costs a goroutine for at most three stream
	// timeouts.
	maxStreams = 256
	// maxStreamsFrom bounds those of one address, so that one host cannot take all.
	maxStreamsFrom = 64
	// maxHeld bounds the bytes that all streams together have brought and that are not worked
	// off, and maxHeldFrom those of one address; a stream that would bring more is closed. The
	// state that they carry spreads by packets meanwhile, and with the next exchange.
	// memberlist and Merge need some six times of it: about 150 MB.
	maxHeld     = 24 << 20
	maxHeldFrom = 16 << 20
	// heldStep is in what steps streams ask for room.
	heldStep = 64 << 10
)

// errCrowded is what a stream is closed with that would bring more than there is room for.
var errCrowded = errors.New("the streams hold as much as they may")

// stream is a connection that Shutdown closes and that counts its bytes. memberlist reads nothing
// of it before all that the other side has to say has arrived, and is what a node says.
type stream struct {
	net.Conn
	t      *transport
	answer bool       // this node opened it, and reads an answer
	from   netip.Addr // who opened it; of those this node opened none

	// Read is called by one goroutine at a time.
	checked bool
	frame   []byte // all that has arrived
	pos     int    // taken by the check
	given   int    // read by memberlist
	err     error  // why nothing follows

	mu     sync.Mutex
	room   int // bytes that are booked with the transport
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

// check waits for all that the other side has to say and reads it. A stream that is refused is
// closed: memberlist would write why.
func (s *stream) check() (err error) {
	err = errMalformed // should reading it panic
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

// take implements source: it reads from the connection, and keeps what it has read.
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

// fill reads once, of what is wanted no more than a step, so that who announces much and sends
// little costs little.
func (s *stream) fill(want int) error {
	const least = 4 << 10 // a whole question or answer, mostly
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

// book asks the transport for room, in steps.
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

// Write closes the stream when it fails: memberlist forgets a stream to which
// it could not write its label.
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

// crowd is who has streams open, and what they have brought.
type crowd struct{ streams, held int }

// track takes a connection into the books, or closes it: the answer comes on it, or a question.
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

// takeRoom books bytes that a stream brings.
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

// forget takes a stream out of the books.
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

// hostOf is the IP address that a stream comes from.
func hostOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
