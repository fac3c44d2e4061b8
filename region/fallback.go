package region

import (
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
)

// mostFallback bounds the buckets metered without the store; beyond it every further one is denied.
const mostFallback = 100_000

// fallback meters what this node admits while its region's store cannot be used: of each bucket and window at most
// [allocator.LocalPart]. It comes on top of what was spent through the store in that window, and of what other nodes
// spend there, until the store has been told (Node.book): that is the price of local. Its time never goes back, so that
// no window opens twice.
type fallback struct {
	nodes int64

	mu    sync.Mutex
	mark  int64 // the latest time it has seen, microseconds
	spent map[string]*spending
}

// spending is what was admitted of one bucket in a window, and in the one before it, which the sliding kinds still count.
type spending struct {
	bucket       *exchange.Bucket
	now, earlier spent
}

// spent is one window's.
type spent struct {
	window int64 // its number
	units  int64
	booked int64 // of units, those that the store has charged
}

// metered is the outcome of one cost on one bucket.
type metered struct {
	room   bool
	left   int64         // of the part, after the cost if there was room
	reset  time.Duration // until the window ends
	never  bool          // the cost is above the whole part
	window int64         // that was charged
}

func newFallback(nodes int) *fallback {
	return &fallback{nodes: int64(nodes), spent: map[string]*spending{}}
}

// take charges a cost to this node's part of a bucket if there is room.
func (f *fallback) take(a applied, cost int64, commit bool, clock time.Time) metered {
	terms := a.target.Terms
	part := allocator.LocalPart(terms.Entitlement, a.bucket.Lending, f.nodes, terms.Kind.Sliding())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, clock.UnixMicro())
	m := metered{window: algorithms.CellAt(f.mark, terms.Window), never: cost > part}
	m.reset = microseconds((m.window+1)*terms.Window - f.mark)
	s := f.spent[a.bucket.ID]
	if s == nil {
		if len(f.spent) >= mostFallback {
			return m
		}
		s = &spending{}
		if commit {
			f.spent[a.bucket.ID] = s
		}
	}
	s.bucket = a.bucket
	if s.now.window < m.window {
		s.now, s.earlier = spent{window: m.window}, s.now
	}
	m.room = s.now.units+cost <= part
	m.left = max(part-s.now.units, 0)
	if m.room {
		m.left -= cost
		if commit {
			s.now.units += cost
		}
	}
	return m
}

// giveBack takes a cost back out of the window it was charged to.
func (f *fallback) giveBack(a applied, cost, window int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.spent[a.bucket.ID]; s != nil && s.now.window == window {
		s.now.units -= cost
	}
}

// booking is what the store is to charge: units in all that were admitted in a window.
type booking struct {
	bucket string // id
	window int64
	units  int64
}

// unbooked returns what the store has not charged yet, at most so many.
func (f *fallback) unbooked(most int) []booking {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []booking
	for id, s := range f.spent {
		for _, one := range []spent{s.earlier, s.now} {
			if one.units > one.booked && len(all) < most {
				all = append(all, booking{id, one.window, one.units})
			}
		}
	}
	return all
}

// booked notes that the store has charged a booking, and returns how many of its units had not been charged before.
func (f *fallback) booked(b booking) (units int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.spent[b.bucket]
	if s == nil {
		return 0
	}
	for _, one := range []*spent{&s.earlier, &s.now} {
		if one.window == b.window {
			units += max(b.units-one.booked, 0)
			one.booked = max(one.booked, b.units)
		}
	}
	return units
}

// standAnew has everything charged once more: the store that has charged it may have lost it. One that has not charges
// nothing twice.
func (f *fallback) standAnew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.spent {
		s.earlier.booked, s.now.booked = 0, 0
	}
}

// forget drops the buckets of which nothing counts any more.
func (f *fallback) forget(clock time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, clock.UnixMicro())
	for id, s := range f.spent {
		if f.mark >= (s.now.window+2)*s.bucket.Window+s.bucket.Guard {
			delete(f.spent, id)
		}
	}
}
