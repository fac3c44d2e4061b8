package rights

import (
	"time"

	"github.com/quotad/quotad/allocator/exchange"
)

// warnEvery is the shortest time between two warnings about the same thing.
const warnEvery = time.Minute

// watchGenerations logs, after a step, what other nodes said about generations. If this node is
// fenced, another node of its region may have opened the store under a later generation. Then
// watchGenerations makes this node open the store again. Only the goroutine that steps the machine
// may call it.
func (s *Stepper) watchGenerations(event exchange.Event) {
	stats := s.machine.Stats()
	now := time.Now()
	if stats.GenerationsRefused > s.refused && now.Sub(s.warned) >= warnEvery {
		s.warned = now
		s.config.Log.Warn("other nodes name generations further ahead of the store's clock than any can be: "+
			"refused; look for a forger, use TLS between regions, or mend NTP where they come from",
			"refused", stats.GenerationsRefused)
	}
	s.refused = stats.GenerationsRefused
	if !stats.Fenced {
		return
	}
	if _, asked := event.(exchange.Questioned); asked {
		s.config.Tenure.Reopen() // the node that asks already works under a later generation
	}
	if _, ticks := event.(exchange.Tick); ticks && now.Sub(s.warnedOf) >= warnEvery {
		s.warnedOf = now
		s.config.Log.Warn("this node lends nothing: another node of its region named a later generation " +
			"than the store was opened under; if that stays, restart this node")
	}
}
