package rights

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
)

// StoreClock returns how far the store's clock is ahead of this node's; false: the store has told no time yet. What it
// told is as old as the report that brought it, so the answer errs towards behind, by some 10 ms.
func (e *Engine) StoreClock(now time.Time) (ahead time.Duration, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return microseconds(e.now() + e.storeAhead - now.UnixMicro()), e.storeTold
}

// watchClocks warns once when the clock of a peer region's store gets further from ours than the sliding kinds allow for,
// and tells once that it is back. Half the clock margin lies between the two, more than estimates move by themselves. Only
// whoever steps the machine calls it.
func (e *Engine) watchClocks(ages []exchange.PeerAge) {
	for _, a := range ages {
		apart := max(a.ClockApart, -a.ClockApart)
		switch {
		case !a.ClockKnown:
		case apart > algorithms.ClockMargin && !e.apart[a.Peer]:
			e.apart[a.Peer] = true
			e.config.Log.Warn("the clock of a peer region's store is further from ours than the clock margin: limits of the sliding kinds may be exceeded in real time; mend NTP there or here",
				"region", a.Peer, "ahead", microseconds(a.ClockApart), "clock_margin", microseconds(algorithms.ClockMargin))
		case apart <= algorithms.ClockMargin/2 && e.apart[a.Peer]:
			delete(e.apart, a.Peer)
			e.config.Log.Info("the clock of a peer region's store is near ours again", "region", a.Peer, "ahead", microseconds(a.ClockApart))
		}
	}
}
