package rights

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

// StoreClock returns how far the store's clock is ahead of this node's. known is false if the store
// has not told its time yet. The time that it told is as old as the report that brought it, so the
// result is too small by some 10 ms.
func (e *Engine) StoreClock(now time.Time) (ahead time.Duration, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return quantity.Duration(int64(e.now().Add(e.storeAhead).Add(-now.UnixMicro()))), e.storeTold
}

// watchClocks warns once when a peer region's store clock gets further from ours than the sliding
// kinds allow (algorithms.ClockMargin), and logs once when it is back. It counts as back at half of
// the margin, so that small moves of the estimate do not repeat the warning.
func (s *Stepper) watchClocks(ages []exchange.PeerAge) {
	for _, a := range ages {
		apart := max(a.ClockApart, -a.ClockApart)
		switch {
		case !a.ClockKnown:
		case apart > algorithms.ClockMargin && !s.apart[a.Peer]:
			s.apart[a.Peer] = true
			s.config.Log.Warn("the clock of a peer region's store is further from ours than the clock margin: limits of the sliding kinds may be exceeded in real time; mend NTP there or here",
				"region", a.Peer, "ahead", quantity.Duration(a.ClockApart), "clock_margin",
				quantity.Duration(algorithms.ClockMargin))
		case apart <= algorithms.ClockMargin/2 && s.apart[a.Peer]:
			delete(s.apart, a.Peer)
			s.config.Log.Info("the clock of a peer region's store is near ours again", "region",
				a.Peer, "ahead", quantity.Duration(a.ClockApart))
		}
	}
}
