package process

import (
	"bytes"
	"io"
	"time"
)

const (
	// mostChunk is how many bytes of a stream are taken at once, and mostChunks
	// how many such pieces may be under way: 2 MiB for each direction of a
	// connection, and then its sender waits.
	mostChunk  = 32 << 10
	mostChunks = 64
)

// chunk is a piece of a stream under way; one without bytes is the stream's end.
type chunk struct {
	bytes []byte
	due   time.Time
}

// take reads a stream into a queue that is closed at its end, or when stop is
// closed and the reader too. The queue's last chunk is the end. ended is closed
// as soon as the sender has ended, which is long before the queue where the line
// is slow or cut.
func (l *line) take(from io.Reader, stop <-chan struct{}) (queue <-chan chunk, ended <-chan struct{}) {
	chunks, over := make(chan chunk, mostChunks), make(chan struct{})
	go func() {
		defer close(chunks)
		defer close(over)
		buffer := make([]byte, mostChunk)
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

// put queues a chunk that sets out now; false: stop was closed first.
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

// give writes what a queue holds, each piece when it is due and the line is not
// cut. It returns at the stream's end, or when nobody takes it any more, or stop
// is closed.
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

// open waits as long as a connection takes to be made over this line, and back
// over another: a round trip, and the end of a cut in either direction. It is
// false if stop or given, the caller's patience, is closed first.
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

// either is closed when one of two is; cancel lets go of it.
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
