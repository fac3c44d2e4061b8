package process

import (
	"bytes"
	"io"
	"time"
)

const (
	// maxChunk is the maximum number of bytes of a stream that are read at once. maxChunks is the
	// maximum number of such pieces under way: 2 MiB for each direction of a connection. Beyond it
	// the sender waits.
	maxChunk  = 32 << 10
	maxChunks = 64
)

// chunk is a piece of a stream under way. One without bytes is the end of the stream.
type chunk struct {
	bytes []byte
	due   time.Time
}

// take reads a stream into a queue. It closes the queue at the end of the stream, or when stop is
// closed and the reader has ended too. The last chunk of the queue is the end of the stream. ended
// is closed as soon as the sender has ended, which is long before the queue's end if the line is
// slow or cut.
func (l *line) take(from io.Reader, stop <-chan struct{}) (queue <-chan chunk,
	ended <-chan struct{}) {
	chunks, over := make(chan chunk, maxChunks), make(chan struct{})
	go func() {
		defer close(chunks)
		defer close(over)
		buffer := make([]byte, maxChunk)
		for {
			n, err := from.Read(buffer)
			if n > 0 && !l.put(chunks, chunk{bytes: bytes.Clone(buffer[:n])}, stop) {
				return
			}
			if err != nil {
				l.put(chunks, chunk{}, stop)
				return
			}
		}
	}()
	return chunks, over
}

// put queues a chunk that is sent now. It returns false if stop was closed first.
func (l *line) put(queue chan<- chunk, c chunk, stop <-chan struct{}) bool {
	fault, _ := l.state()
	c.due = time.Now().Add(fault.Delay)
	l.count(func(s *LineStats) { s.delay(fault) })
	select {
	case queue <- c:
		return true
	case <-stop:
		return false
	}
}

// give writes the queued chunks, each when it is due and the line is not cut. It returns at the end
// of the stream, when a write fails, or when stop is closed.
func (l *line) give(to io.Writer, queue <-chan chunk, stop <-chan struct{}) {
	for c := range queue {
		if !until(c.due, stop) || !l.pass(stop) || len(c.bytes) == 0 {
			return
		}
		if _, err := to.Write(c.bytes); err != nil {
			return
		}
	}
}

// open waits as long as it takes to make a connection over this line and back over another: a round
// trip, and the end of any cut in either direction. It returns false if stop is closed first, or
// given, which is closed when the caller gives up.
func (l *line) open(back *line, stop, given <-chan struct{}) bool {
	there, _ := l.state()
	here, _ := back.state()
	enough, cancel := either(stop, given)
	defer cancel()
	if !until(time.Now().Add(there.Delay+here.Delay), enough) {
		return false
	}
	for {
		if !l.pass(enough) || !back.pass(enough) {
			return false
		}
		if there, _ = l.state(); !there.CutTCP {
			return true
		}
	}
}

// either returns a channel that is closed when a or b is closed; cancel releases its goroutine.
func either(a, b <-chan struct{}) (one <-chan struct{}, cancel func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-a:
		case <-b:
		case <-gone:
		}
	}()
	return done, func() { close(gone); <-done }
}
