package region

import (
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// mostFallback bounds the buckets metered without the store; beyond it every further one is denied.
const mostFallback = 100_000

// fallback meters what this node admits while its region's store cannot be used: of each bucket and window at most
//
//	floor((F - lending limit x F) / nodes)
//
// (half of that where use fades over two windows), the part of the entitlement that cannot have been lent, divided by the number of nodes the region has by
// configuration, never by who is alive. It comes on top of what was spent through the store in that cell, and of what
// other nodes spend there: that is the price of local. Its time never goes back, so that no cell opens twice.
type fallback struct {
	nodes int64

	mu    sync.Mutex
	mark  int64                // the latest time it has seen, microseconds
	spent map[string]cellSpent // by bucket id
}

type cellSpent struct{ cell, ends, units int64 }

// metered is the outcome of one cost on one bucket.
type metered struct {
	room  bool
	left  int64         // of the part, after the cost if there was room
	reset time.Duration // until the cell ends
	never bool          // the cost is above the whole part
	cell  int64         // that was charged
}

func newFallback(nodes int) *fallback {
	return &fallback{nodes: int64(nodes), spent: map[string]cellSpent{}}
}

// take charges a cost to this node's part of a bucket if there is room.
func (f *fallback) take(a applied, cost int64, commit bool, clock time.Time) metered {
	terms := a.target.Terms
	part := (terms.Entitlement - allocator.Part(terms.Entitlement, a.bucket.Lending)) / f.nodes
	if terms.Kind.Sliding() {
		part /= 2
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, clock.UnixMicro())
	m := metered{cell: algorithms.CellAt(f.mark, terms.Window), never: cost > part}
	m.reset = microseconds((m.cell+1)*terms.Window - f.mark)
	s, known := f.spent[a.bucket.ID]
	if !known && len(f.spent) >= mostFallback {
		return m
	}
	if s.cell < m.cell {
		s = cellSpent{cell: m.cell, ends: (m.cell + 1) * terms.Window}
	}
	if m.room = s.units+cost <= part; m.room {
		s.units += cost
	}
	m.left = max(part-s.units, 0)
	if commit {
		f.spent[a.bucket.ID] = s
	}
	return m
}

// giveBack takes a cost back out of the cell it was charged to.
func (f *fallback) giveBack(a applied, cost, cell int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.spent[a.bucket.ID]; s.cell == cell {
		s.units -= cost
		f.spent[a.bucket.ID] = s
	}
}

// forget drops the buckets whose cell is over.
func (f *fallback) forget(clock time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, clock.UnixMicro())
	for id, s := range f.spent {
		if f.mark >= s.ends {
			delete(f.spent, id)
		}
	}
}
