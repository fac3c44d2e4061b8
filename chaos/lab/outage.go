package lab

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// outage makes round trips to a simulated server fail, or their replies get lost. Safe for
// concurrent use.
type outage struct {
	faults sync.Mutex // guards the following

	down  bool
	spare int // this many of the next round trips do neither of what follows
	fail  int // this many of the next round trips do not reach the server
	lose  int // this many of the next round trips lose their reply
	lost  int // round trips so far that reached the server and whose reply was lost
}

// SetDown makes the server unreachable: connections to it fail.
func (o *outage) SetDown(down bool) {
	o.faults.Lock()
	defer o.faults.Unlock()
	o.down = down
}

// Spare lets the next n round trips pass before what FailNext and LoseReply ask for.
func (o *outage) Spare(n int) {
	o.faults.Lock()
	defer o.faults.Unlock()
	o.spare = n
}

// FailNext has the next n round trips time out before they reach the server. Their calls do not
// run, which the caller cannot know.
func (o *outage) FailNext(n int) {
	o.faults.Lock()
	defer o.faults.Unlock()
	o.fail = n
}

// LoseReply has the next n round trips time out after they reached the server. Their calls run.
func (o *outage) LoseReply(n int) {
	o.faults.Lock()
	defer o.faults.Unlock()
	o.lose = n
}

// Unheard returns how many round trips so far reached the server without a reply.
func (o *outage) Unheard() int {
	o.faults.Lock()
	defer o.faults.Unlock()
	return o.lost
}

var errRefused error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// trip begins a round trip. runs reports whether it reaches the server; err says why no reply comes
// back.
func (o *outage) trip() (runs bool, err error) {
	o.faults.Lock()
	defer o.faults.Unlock()
	switch {
	case o.down:
		return false, errRefused
	case o.spare > 0:
		o.spare--
	case o.fail > 0:
		o.fail--
		return false, context.DeadlineExceeded
	case o.lose > 0:
		o.lose--
		o.lost++
		return true, context.DeadlineExceeded
	}
	return true, nil
}

// answerLost notes that a round trip reached the server, and that its reply came too late.
func (o *outage) answerLost() {
	o.faults.Lock()
	defer o.faults.Unlock()
	o.lost++
}
