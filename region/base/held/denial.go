package held

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// AskAgain is how often one request asks the store although a denial is remembered: other nodes may
// have borrowed rights, refunded or reset.
const AskAgain = 100 * time.Millisecond

// Answer is what the store answered about a bucket, to one or several requests.
type Answer struct {
	Generation uint64             // of the store
	Now        quantity.StoreTime // when it answered
	Asked      time.Duration      // the node's monotonic clock before it was asked
	Heard      time.Duration      // and when its answer was there
	State      algorithms.State
	Ends       quantity.StoreTime // when the State's cell ends
	// Denied is the smallest cost that the bucket had no room for, 0: none. Verdict belongs to it.
	// Of a request of a smaller part Lower has it.
	Denied  quantity.Units
	Verdict algorithms.Verdict
	Fitted  quantity.Units // the largest cost that it had room for, 0: none
	// Lower is about requests that may use only a part of the bucket's rights, each part once.
	Lower   []PartAnswer
	Kind    algorithms.Kind // with Lower
	Charged quantity.Units  // of all that was admitted
	// Of is what the caller keeps with the answer, nil: nothing. A chunk that carries something is
	// given back by itself.
	Of any
}

// At returns the store's time at a time of the node's clock, or a little less, as far as the node
// can tell. It is before Ends as long as less time has passed since Asked than there was until
// Ends, so until a chunk is over.
func (a *Answer) At(now time.Duration) quantity.StoreTime {
	return a.Now.Add(max(now-a.Heard, 0).Microseconds())
}

// Reset returns after how many us the bucket is whole if nothing else happens, at a time of the
// node's clock.
func (a *Answer) Reset(now time.Duration) int64 {
	return max(a.State.Reset-(now-a.Heard).Microseconds(), 0)
}

// Denial is a denial that is remembered.
type Denial struct {
	Now     quantity.StoreTime // the store's time or a little less, as far as the node can tell
	State   algorithms.State
	Verdict algorithms.Verdict // its Retry has shrunk since the store answered
	Of      any                // the Answer's
}

type denial struct {
	Answer
	part  quantity.PPM // of the bucket's rights, of a request that may not use all
	again atomic.Int64 // when a request asks the store again, on the node's clock
}

// Learn takes in an answer of the store to requests that were to be charged. A chunk is over if the
// region has fewer rights of the cell than when the store was charged with it.
func (m *Memory) Learn(a Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = max(a.State.Free, 0)
	m.pace.add(a.Charged, a.Asked)
	if c := m.chunk.Load(); c != nil && c.State.Cell == a.State.Cell &&
		a.State.Share < c.State.Share {
		c.until.Store(0)
	}
	m.learnDenial(a)
}

// learnDenial remembers a denial, or forgets one that no longer holds.
func (m *Memory) learnDenial(a Answer) {
	if a.Now <= m.changed {
		return
	}
	m.changed = a.Now - 1 // a reply to an earlier call may come later
	m.learnLower(a)
	m.denial.Store(next(m.denial.Load(), a, PartAnswer{Denied: a.Denied, Verdict: a.Verdict, Fitted: a.Fitted, Free: a.State.Free}))
}

// next returns the denial that holds after an answer: the old one, the one of the answer, or nil.
func next(old *denial, a Answer, its PartAnswer) *denial {
	// A larger cost may have been denied now although there is room for the old one.
	if old != nil && old.ended(a, max(its.Fitted, its.Free)) {
		old = nil
	}
	if its.Denied == 0 || its.Verdict.Retry <= 0 || a.State.Shut > a.Now ||
		old != nil && old.Denied < its.Denied {
		return old
	}
	d := &denial{Answer: a, part: its.Part}
	d.Denied, d.Verdict = its.Denied, its.Verdict
	d.again.Store(int64(a.Asked + AskAgain))
	return d
}

// ended reports whether an answer shows that the denial no longer holds: so many units fit now.
func (d *denial) ended(a Answer, fits quantity.Units) bool {
	return fits >= d.Denied || d.Generation != a.Generation || d.over(a.Asked)
}

// over reports whether the retry time has come or the next cell has begun, in which the region may
// have other rights.
func (d *denial) over(now time.Duration) bool {
	return (now - d.Asked).Microseconds() >= min(d.Verdict.Retry, d.Ends.Sub(d.Now))
}

// Forget forgets the denials that the store answered up to a time, because the bucket may have room
// since.
func (m *Memory) Forget(at quantity.StoreTime) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = max(m.changed, at)
	if d := m.denial.Load(); d != nil && d.Now <= at {
		m.denial.Store(nil)
	}
	if all := m.lower.Load(); all != nil {
		kept := slices.DeleteFunc(slices.Clone(*all), func(d *denial) bool { return d.Now <= at })
		m.lower.Store(&kept)
	}
}

// Deny returns the remembered denial that a request of this cost meets, if there is one: of this
// generation, of at most this cost, and before its retry time and the next cell. If the store was
// not asked for AskAgain, turn is true instead, and the request must ask the store.
func (m *Memory) Deny(cost quantity.Units, generation uint64, now time.Duration) (told Denial,
	denied, turn bool) {
	return m.denial.Load().deny(cost, generation, now)
}

// deny is Memory.Deny for one denial, or none.
func (d *denial) deny(cost quantity.Units, generation uint64, now time.Duration) (told Denial, denied, turn bool) {
	if d == nil || cost < d.Denied || generation != d.Generation || d.over(now) {
		return Denial{}, false, false
	}
	if again := d.again.Load(); int64(now) >= again &&
		d.again.CompareAndSwap(again, int64(now+AskAgain)) {
		return Denial{}, false, true
	}
	return d.told(now), true, false
}

// Denies returns the remembered denial, whatever its cost, if there is one: of this generation, and
// before its retry time and the next cell.
func (m *Memory) Denies(generation uint64, now time.Duration) (Denial, bool) {
	d := m.denial.Load()
	if d == nil || generation != d.Generation || d.over(now) {
		return Denial{}, false
	}
	return d.told(now), true
}

// told returns the denial as it is told at a time of the node's clock.
func (d *denial) told(now time.Duration) Denial {
	told := Denial{Now: d.At(now), State: d.State, Verdict: d.Verdict, Of: d.Of}
	told.Verdict.Retry -= (now - d.Asked).Microseconds()
	told.State.Reset = d.Reset(now)
	return told
}
