package lab

import (
	"context"
	"net"
	"syscall"
)

// outage is why calls do not get to a server of a simulation, or their replies not back. Not safe for concurrent use.
type outage struct {
	down bool
	fail int // round trips to come that do not get there
	lose int // round trips to come whose reply gets lost
}

// SetDown takes the server out of reach: no connection to it comes about.
func (o *outage) SetDown(down bool) { o.down = down }

// FailNext has the next n round trips time out before they get to the server: their calls do not run, which their
// caller cannot know.
func (o *outage) FailNext(n int) { o.fail = n }

// LoseReply has the next n round trips time out after they got to the server: their calls run.
func (o *outage) LoseReply(n int) { o.lose = n }

var errRefused error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// trip begins a round trip: runs says whether it gets to the server, err why no reply comes back.
func (o *outage) trip() (runs bool, err error) {
	switch {
	case o.down:
		return false, errRefused
	case o.fail > 0:
		o.fail--
		return false, context.DeadlineExceeded
	case o.lose > 0:
		o.lose--
		return true, context.DeadlineExceeded
	}
	return true, nil
}
