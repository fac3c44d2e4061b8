package admit

import (
	"sync"
	"sync/atomic"

	"github.com/quotad/quotad/quantity"
)

// Full says how full a bucket was after a decision.
type Full struct {
	Used  float64        // the part of the share that was used: 0 to 1
	Units quantity.Units // of the limit, in a window, over all regions
	Share quantity.Units // of this region
	Free  quantity.Units // of the share
}

// fullest keeps, for each limit, how full the fullest bucket was that a decision was about lately.
// Safe for concurrent use.
type fullest struct {
	of sync.Map // *peak by the name of a limit
}

// peak is the fullest bucket of the present period, and of the one before. A Full without Share is
// none.
type peak struct {
	// passed is Full.Used in parts per million and one, of the present period: what is not above it
	// needs no lock.
	passed      atomic.Int64
	mu          sync.Mutex
	now, before Full
}

// saw takes in what a decision says of the limit that decided it. Without a count it says nothing.
func (f *fullest) saw(d Decision) {
	used := d.Share - d.Remaining - d.Kept
	if d.Share <= 0 || d.Cell == 0 || used < 0 {
		return
	}
	known, met := f.of.Load(d.Limit)
	if !met {
		known, _ = f.of.LoadOrStore(d.Limit, &peak{})
	}
	part, p := int64(float64(used)/float64(d.Share)*1e6), known.(*peak)
	if part < p.passed.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if part >= p.passed.Load() {
		p.passed.Store(part + 1)
		p.now = Full{float64(part) / 1e6, d.LimitUnits, d.Share, d.Remaining + d.Kept}
	}
}

// turn begins another period.
func (f *fullest) turn() {
	f.of.Range(func(_, known any) bool {
		p := known.(*peak)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.before, p.now = p.now, Full{}
		p.passed.Store(0)
		return true
	})
}

// Fullest returns for each limit that decided a request how full its fullest bucket was lately:
// since the last but one call of Forget. It is the zero value if there was none.
func (l *Limiter) Fullest() map[string]Full {
	all := map[string]Full{}
	l.accounts.fullest.of.Range(func(limit, known any) bool {
		p := known.(*peak)
		p.mu.Lock()
		defer p.mu.Unlock()
		all[limit.(string)] = p.before
		if p.now.Used >= p.before.Used && p.now.Share > 0 {
			all[limit.(string)] = p.now
		}
		return true
	})
	return all
}
