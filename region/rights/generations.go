package rights

import (
	"time"

	"github.com/quotad/quotad/allocator/exchange"
)

// warnEvery is how often the same is warned of at most.
const warnEvery = time.Minute

// watchGenerations looks, after a step, at what others said of generations. Who is fenced has its
// store looked at, for a mate may have opened it anew. Only the engine calls it.
func (e *Engine) watchGenerations(event exchange.Event) {
	stats := e.machine.Stats()
	now := time.Now()
	if stats.GenerationsRefused > e.refused && now.Sub(e.warned) >= warnEvery {
		e.warned = now
		e.config.Log.Warn("other nodes name generations further ahead of the store's clock than any can be: "+
			"refused; look for a forger, use TLS between regions, or mend NTP where they come from",
			"refused", stats.GenerationsRefused)
	}
	e.refused = stats.GenerationsRefused
	if !stats.Fenced {
		return
	}
	if _, asked := event.(exchange.Questioned); asked {
		e.config.Tenure.Reopen() // a mate stands under a later one already
	}
	if _, ticks := event.(exchange.Tick); ticks && now.Sub(e.warnedOf) >= warnEvery {
		e.warnedOf = now
		e.config.Log.Warn("this node lends nothing: another node of its region named a later generation " +
			"than the store stands under; if that stays, restart this node")
	}
}
