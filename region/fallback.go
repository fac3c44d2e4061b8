package region

import (
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/policy"
)

// mostFallback bounds the buckets metered without the store; beyond it every further one is denied.
const mostFallback = 100_000

// fallback meters what this node admits while its region's store cannot be used: of each bucket and cell at most
//
//	floor((F - lending limit x F) / nodes)
//
// the part of the entitlement that cannot have been lent, divided by the number of nodes the region has by
// configuration, never by who is alive. It comes on top of what was spent through the store in that cell, and of what
// other nodes spend there: that is the price of local.
type fallback struct {
	nodes int64

	mu    sync.Mutex
	spent map[string]cellSpent // by bucket id
}

type cellSpent struct{ cell, ends, units int64 }

func newFallback(nodes int) *fallback {
	return &fallback{nodes: int64(nodes), spent: map[string]cellSpent{}}
}

// take charges a request to this node's part of a bucket if there is room, and says what is left and for how long.
func (f *fallback) take(a applied, cost int64, commit bool, now time.Time) (room bool, left int64, reset time.Duration) {
	terms := a.target.Terms
	part := (terms.Entitlement - allocator.Part(terms.Entitlement, a.bucket.Lending)) / f.nodes
	cell := algorithms.CellAt(now.UnixMicro(), terms.Window)
	reset = microseconds((cell+1)*terms.Window - now.UnixMicro())
	f.mu.Lock()
	defer f.mu.Unlock()
	s, known := f.spent[a.bucket.ID]
	if !known && len(f.spent) >= mostFallback {
		return false, 0, reset
	}
	if s.cell < cell {
		s = cellSpent{cell: cell, ends: (cell + 1) * terms.Window}
	}
	room = s.units+cost <= part
	if room {
		s.units += cost
	}
	if commit {
		f.spent[a.bucket.ID] = s
	}
	return room, max(part-s.units, 0), reset
}

// giveBack takes back what a denied request was charged on the limits before the one that denied it.
func (f *fallback) giveBack(charged []applied, cost int64, commit bool, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range charged {
		if !commit || a.limit.Shadow || a.limit.OnStoreFailure != policy.StoreFailureLocal {
			continue
		}
		s := f.spent[a.bucket.ID]
		if s.cell == algorithms.CellAt(now.UnixMicro(), a.target.Terms.Window) {
			s.units -= cost
			f.spent[a.bucket.ID] = s
		}
	}
}

// forget drops the buckets whose cell is over.
func (f *fallback) forget(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.spent {
		if now.UnixMicro() >= s.ends {
			delete(f.spent, id)
		}
	}
}
