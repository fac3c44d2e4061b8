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
// spend there, until the store has been told (Node.book): that is the price of local. Where the limit keeps a reserve it
// is [allocator.ReservePart] instead, which never was the store's: nothing comes on top, and the store is not told. Its
// time never goes back, so that no window opens twice.
type fallback struct {
	nodes int64
	claim claim

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
	window   int64 // its number
	units    int64
	reserved int64 // of units, those out of a reserve
	booked   int64 // of units, those that the store has charged
	before   bool  // an earlier life of this node may have spent the whole part
}

// due returns the units that are the store's to charge.
func (s spent) due() int64 { return s.units - s.reserved }

// metered is the outcome of one cost on one bucket.
type metered struct {
	room   bool
	left   int64         // of the part, after the cost if there was room
	reset  time.Duration // until the window ends
	never  bool          // the cost is above the whole part
	window int64         // that was charged
}

// claim says whether an earlier life of this node may have spent its part of a bucket in a window, whose use counts until a
// time; if not, and it is to be spent now, it notes durably that it is.
type claim func(bucket string, window, until int64, spend bool) (before bool, err error)

// newFallback returns a meter; without a claim the node has no earlier life.
func newFallback(nodes int, c claim) *fallback {
	return &fallback{nodes: int64(nodes), claim: c, spent: map[string]*spending{}}
}

// part returns what this node may admit of a bucket in a window.
func (f *fallback) part(a applied) int64 {
	t := a.target.Terms
	if a.reserve == nil {
		return allocator.LocalPart(t.Entitlement, a.bucket.Lending, f.nodes, t.Kind.Sliding())
	}
	return allocator.ReservePart(a.reserve.units, a.reserve.burst, f.nodes, t.Kind.Sliding(), t.Kind.Bucket())
}

// take charges a cost to this node's part of a bucket if there is room. Where nobody knows what was spent of a window, all
// of it was.
func (f *fallback) take(a applied, cost int64, commit bool, clock time.Time) metered {
	length, part := a.target.Terms.Window, f.part(a)
	window, fresh, full := f.look(a.bucket.ID, length, clock)
	m := metered{window: window, never: cost > part, reset: microseconds((window+1)*length - max(clock.UnixMicro(), window*length))}
	if full || cost > part {
		return m
	}
	before := false
	if fresh && f.claim != nil {
		var err error
		if before, err = f.claim(a.bucket.ID, window, (window+2)*length+a.bucket.Guard, commit); err != nil {
			return m
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.spent[a.bucket.ID]
	if s == nil {
		s = &spending{}
		if commit {
			f.spent[a.bucket.ID] = s
		}
	}
	s.bucket = a.bucket
	if s.now.window < window {
		s.now, s.earlier = spent{window: window, before: before}, s.now
	}
	if s.now.before || s.now.window > window {
		return m
	}
	m.room = s.now.units+cost <= part
	m.left = max(part-s.now.units, 0)
	if m.room {
		m.left -= cost
		if commit {
			s.now.add(a, cost)
		}
	}
	return m
}

// look returns the number of the present window, whether nothing of it was metered yet, and whether there is no room to.
func (f *fallback) look(bucket string, length int64, clock time.Time) (window int64, fresh, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, clock.UnixMicro())
	window = algorithms.CellAt(f.mark, length)
	s := f.spent[bucket]
	return window, s == nil || s.now.window < window, s == nil && len(f.spent) >= mostFallback
}

// add charges a cost, or below 0 takes it back.
func (s *spent) add(a applied, cost int64) {
	s.units += cost
	if a.reserve != nil {
		s.reserved += cost
	}
}

// giveBack takes a cost back out of the window it was charged to.
func (f *fallback) giveBack(a applied, cost, window int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.spent[a.bucket.ID]; s != nil && s.now.window == window {
		s.now.add(a, -cost)
	}
}

// booking is what the store is to charge: units in all that were admitted in a window, but for those out of a reserve.
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
			if one.due() > one.booked && len(all) < most {
				all = append(all, booking{id, one.window, one.due()})
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
