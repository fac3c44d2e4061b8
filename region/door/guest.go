package door

import (
	"context"
	"time"
)

const (
	// answerBefore is how long before its caller gives up a call is refused that was not let in, so
	// that the caller hears it. Of a caller who has less than answerParts times that it is a part of
	// what it has.
	answerBefore = 5 * time.Millisecond
	answerParts  = 4
	// neverBegins is how long after its end a call's handler may begin.
	neverBegins = time.Second
)

// guest is a call in a Crowd. Its fields but stop are the Crowd's.
type guest struct {
	crowd  *Crowd // nil: the call needs none
	caller string
	came   time.Time
	until  time.Time // until then it waits outside
	ends   time.Time // then its caller gives up
	place  place
	turn   chan struct{} // closed when it is let in; nil: it was at once
	stop   func() bool   // stops waiting for the end of a call whose handler has not begun
}

// enter brings a call to a Crowd. The error says that it is refused. A call of which gRPC never
// begins the handler leaves some time after its end.
func (g *guest) enter(c *Crowd, ctx context.Context, now time.Time) error {
	ends, known := ctx.Deadline()
	if !known || !ends.After(now) { // gRPC answers the latter at once
		return nil
	}
	if on := connOf(ctx); on != nil {
		g.caller = on.remote.host
	}
	g.came, g.ends, g.until = now, ends, ends.Add(-min(answerBefore, ends.Sub(now)/answerParts))
	if c.comes(g, now) == refused {
		c.shed()
		return c.refused
	}
	g.crowd = c
	g.stop = context.AfterFunc(ctx, func() {
		time.AfterFunc(neverBegins, func() { g.leave(false) })
	})
	return nil
}

// begins says that the call's handler has begun, and waits until the call is let in. The error says
// that it is not.
func (g *guest) begins(ctx context.Context) error {
	if g.crowd == nil {
		return nil
	}
	g.stop()
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

// leave lets the call out, once. answered says that it was, in time.
func (g *guest) leave(answered bool) {
	if g.crowd != nil && !g.crowd.givesUp(g) {
		g.crowd.leaves(g, time.Now(), answered)
	}
}
