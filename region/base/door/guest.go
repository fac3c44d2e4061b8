package door

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// A call that was not let in is refused answerBefore before its caller gives up, so that the
	// caller hears it. If the caller has less than answerParts times that, it is refused when
	// 1/answerParts of that time is left.
	answerBefore = 5 * time.Millisecond
	answerParts  = 4
	// gRPC never begins the handler of a call that its caller ends before the message has come.
	// Such a call leaves neverBegins after its end. The Crowd looks for such calls when coming
	// further calls have come, and at least each lookEvery.
	neverBegins = time.Second
	coming      = 256
	lookEvery   = time.Second
)

// guest is a call in a Crowd. Its fields but begun are the Crowd's.
type guest struct {
	waiter
	crowd *Crowd    // nil: the call needs none
	ends  time.Time // then its caller gives up
	place place
	begun atomic.Bool // its handler has begun
}

// enter brings a call to a Crowd. The error says that it is refused.
func (g *guest) enter(c *Crowd, ctx context.Context, now time.Time) error {
	ends, known := ctx.Deadline()
	if !known || !ends.After(now) { // gRPC answers the latter at once
		return nil
	}
	if on := connOf(ctx); on != nil {
		g.caller = on.remote.host
	}
	g.came, g.ends, g.until = now, ends, Outwaits(now, ends)
	if c.comes(g, now) == refused {
		c.shed()
		return c.refused
	}
	g.crowd = c
	return nil
}

// Outwaits returns until when a call waits whose caller gives up at ends.
func Outwaits(now, ends time.Time) time.Time {
	return ends.Add(-min(answerBefore, ends.Sub(now)/answerParts))
}

// begins says that the call's handler has begun, and waits until the call is let in. The error says
// that it is not.
func (g *guest) begins(ctx context.Context) error {
	if g.crowd == nil {
		return nil
	}
	g.begun.Store(true)
	if g.turn == nil {
		return nil
	}
	over := time.NewTimer(time.Until(g.until))
	defer over.Stop()
	select {
	case <-g.turn:
		return nil
	case <-over.C:
	case <-ctx.Done():
	}
	if !g.crowd.givesUp(g) {
		return nil
	}
	g.crowd.shed()
	return g.crowd.refused
}

// leave lets the call out, once. answered reports whether it was answered in time.
func (g *guest) leave(answered bool) {
	if g.crowd != nil && !g.crowd.givesUp(g) {
		g.crowd.leaves(g, time.Now(), answered)
	}
}
