package region

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
)

// storeClock returns how far the store's clock is ahead of this node's; false: the store has told no time yet. What it
// told is as old as the report that brought it, so the answer errs towards behind, by some 10 ms.
func (e *engine) storeClock(now time.Time) (ahead time.Duration, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return microseconds(e.now() + e.storeAhead - now.UnixMicro()), e.storeTold
}

// watchClocks warns once when the clock of a peer region's store gets further from ours than the sliding kinds allow for,
// and tells once that it is back. Half the guard lies between the two, more than estimates move by themselves. Only the
// engine calls it.
func (n *Node) watchClocks(ages []exchange.PeerAge) {
	for _, a := range ages {
		apart := max(a.ClockApart, -a.ClockApart)
		switch {
		case !a.ClockKnown:
		case apart > algorithms.ClockMargin && !n.apart[a.Peer]:
			n.apart[a.Peer] = true
			n.log.Warn("the clock of a peer region's store is further from ours than the guard: limits of the sliding kinds may be exceeded in real time; mend NTP there or here",
				"region", a.Peer, "ahead", microseconds(a.ClockApart), "guard", microseconds(algorithms.ClockMargin))
		case apart <= algorithms.ClockMargin/2 && n.apart[a.Peer]:
			delete(n.apart, a.Peer)
			n.log.Info("the clock of a peer region's store is near ours again", "region", a.Peer, "ahead", microseconds(a.ClockApart))
		}
	}
}
