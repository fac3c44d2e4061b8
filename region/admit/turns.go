package admit

import (
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/rules"
)

// turnPlaces is how many places turns are kept in. Buckets that share a place have their callers wait
// longer than they need to, by what the others' are told.
const turnPlaces = 4096

// turns tells those who are denied by a bucket that refills to come one after the other: each when
// what it asks for is there beside what those before it were told to come for. Who is told one token's
// time along with everybody else is denied again. Safe for concurrent use.
type turns struct {
	last [turnPlaces]atomic.Int64 // µs of the store: when the one came last told is to come
}

// turnsApart is how much further apart turns are than what refills says, as newcomers take some of it:
// an eighth.
const turnsApart = 9. / 8

// next returns after how long a request is to come again that a bucket denies, at a time of the
// store: own if nobody else was told to come, and no more than a window later. Each of the region's
// nodes tells its callers by itself, and so each has them come for its part of the refill.
func (t *turns) next(a *rules.Applied, at quantity.StoreTime, own time.Duration, cost, share quantity.Units,
	nodes int) time.Duration {
	if share <= 0 {
		return own
	}
	window := float64(a.Target.Terms.Window)
	takes := int64(window * float64(cost) / float64(share) * float64(max(nodes, 1)) * turnsApart)
	first := int64(at) + own.Microseconds()
	last := &t.last[a.Hash%turnPlaces]
	for {
		before := last.Load()
		turn := max(first, before+takes)
		if latest := first + a.Target.Terms.Window; turn > latest || before > latest {
			return microseconds(latest - int64(at))
		}
		if last.CompareAndSwap(before, turn) {
			return microseconds(turn - int64(at))
		}
	}
}
