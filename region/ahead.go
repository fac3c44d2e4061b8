package region

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// aheadEvery is how often a node compares the store's time with clocks.
	aheadEvery = 5 * time.Second
	// aheadSaidEvery is the shortest time between two log lines that the store's time is ahead.
	aheadSaidEvery = time.Minute
)

// aheadNext is what an operator can do about a store's time that is ahead.
const aheadNext = "set all clocks by NTP; if they are right, wait, or end all nodes of the region, empty its Redis, and start each of them with forget_store_time, once"

// aheadAlone is what an operator can do about a node whose journal alone remembers such a time.
const aheadAlone = "set all clocks by NTP; if they are right, wait, or start this node with forget_store_time, once, if the region's time was taken back"

// standstill is what a node found of a store whose time is ahead of every clock that it hears.
type standstill struct {
	ahead time.Duration // of the clock that is nearest
	until quantity.StoreTime
	since time.Time // when this node found it
}

func (s *standstill) Error() string {
	return fmt.Sprintf("windows stand still, for the region's Redis has shown %s, which is %v ahead of every clock that this node hears, its Redis' among them: they move when clocks come there; found at %s: %s",
		shownTime(s.until), s.ahead.Round(time.Second), s.since.UTC().Format(time.RFC3339), aheadNext)
}

// shownTime returns a time of the store as texts have it.
func shownTime(at quantity.StoreTime) string {
	return time.UnixMicro(int64(at)).UTC().Format(time.RFC3339)
}

// aheadWatch is what a node knows of how far the store's time is ahead of clocks. Only one goroutine
// looks; any may ask what was found.
type aheadWatch struct {
	found atomic.Pointer[standstill] // nil: a clock confirms the store's time
	said  time.Time
}

// ready returns why windows stand still, nil if they do not.
func (w *aheadWatch) ready() error {
	if found := w.found.Load(); found != nil {
		return found
	}
	return nil
}

// sayAhead logs that the store's time is ahead, once a minute.
func (n *Node) sayAhead(why error) {
	if now := time.Now(); n.aheads.said.IsZero() || now.Sub(n.aheads.said) >= aheadSaidEvery {
		n.aheads.said = now
		n.log.Error("the store's time is ahead of every clock that this node hears: windows stand still", "why", why.Error())
	}
}

// ahead returns how far a time of the store is ahead of this node's clock.
func (n *Node) ahead(at quantity.StoreTime) time.Duration {
	return time.UnixMicro(int64(at)).Sub(n.config.Now())
}

// latestOf returns the latest time that any shard has shown.
func latestOf(all []store.Standing) (at quantity.StoreTime) {
	for _, s := range all {
		at = max(at, s.Mark)
	}
	return at
}

// unconfirmed returns how far a time of the store is ahead of the nearest of all clocks: this node's,
// those of the store's servers, and if need be those of all other nodes. One that is no further behind
// than clockAhead confirms the time. The servers count, for where one of them is there itself, windows
// move: then a clock is wrong and the store's time is not, or not yet.
func (n *Node) unconfirmed(ctx context.Context, at quantity.StoreTime, all []store.Standing) (nearest time.Duration, ahead bool) {
	nearest = n.ahead(at)
	for _, s := range all {
		nearest = min(nearest, time.UnixMicro(int64(at)).Sub(s.Clock))
	}
	if nearest <= clockAhead {
		return nearest, false
	}
	for _, a := range n.otherClocks(ctx) {
		nearest = min(nearest, time.UnixMicro(int64(at)).Sub(a.Clock))
	}
	return nearest, nearest > clockAhead
}

// timeAgrees waits until a clock confirms the time that the store has shown, or that this node's journal
// remembers and would have the store begin with. It fails if ctx ends before.
func (n *Node) timeAgrees(ctx context.Context) error {
	for !n.config.TrustClock {
		all, err := n.config.Store.Standing(ctx)
		if err != nil {
			return nil // opening it says so
		}
		by, at, next := "the region's Redis has shown", latestOf(all), aheadNext
		if shown := n.Shown(); shown > at && n.ahead(at) <= clockAhead {
			if by = "this node's journal remembers that its Redis may have shown"; at > 0 {
				next = aheadAlone
			}
			at = shown
		}
		nearest, ahead := n.unconfirmed(ctx, at, all)
		if at == 0 || !ahead {
			return nil
		}
		err = fmt.Errorf("the store is not opened: %s %s, which is %v ahead of every clock that this node hears, so that windows would stand still until clocks come there: %s; with trust_clock this node opens it all the same",
			by, shownTime(at), nearest.Round(time.Second), next)
		n.sayAhead(err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(clockPoll):
		}
	}
	return nil
}

// watchAhead compares the store's time with clocks, until ctx ends. A node that finds it ahead goes on,
// for its windows stand still and exceed nothing, and is not ready.
func (n *Node) watchAhead(ctx context.Context) {
	n.lookAhead(ctx)
	repeat.Every(ctx, aheadEvery, func(time.Time) { n.lookAhead(ctx) })
}

func (n *Node) lookAhead(ctx context.Context) {
	before, at := n.aheads.found.Load(), n.config.Store.Latest()
	nearest, ahead := n.ahead(at), false
	if nearest > clockAhead {
		all, err := n.config.Store.Standing(ctx)
		if err != nil {
			return // what was found stays, until the store answers
		}
		nearest, ahead = n.unconfirmed(ctx, at, all)
	}
	switch {
	case ctx.Err() != nil:
	case ahead:
		found := &standstill{ahead: nearest, until: at, since: n.config.Now()}
		if before != nil {
			found.since = before.since
		}
		n.aheads.found.Store(found)
		n.sayAhead(found)
	case before != nil:
		n.aheads.found.Store(nil)
		n.log.Info("a clock confirms the store's time again: windows move", "found", before.since)
	}
}
