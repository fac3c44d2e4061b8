package world

import (
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// watch follows a story beside the judge: how much each region was offered and admitted in each
// cell, and how fast the cut region's share reached its target. Safe for concurrent use.
type watch struct {
	limit  int64
	window int64 // microseconds

	mu     sync.Mutex
	cells  map[int64]map[string]*RegionProgress // by cell and region
	stages []*stage
}

// stage is what the watch saw of the cut region in a phase.
type stage struct {
	phase
	from       time.Time
	before     int64     // the target share of the phase before
	target     int64     // the share it should reach
	firstShare int64     // the first share seen in the phase
	short      time.Time // when it was first denied
	gained     time.Time // when its share was first seen to grow after that
	reached    time.Time // when its share was first seen at 95 % of the target
}

func newWatch(limit int64, window time.Duration) *watch {
	return &watch{limit: limit, window: window.Microseconds(),
		cells: map[int64]map[string]*RegionProgress{}}
}

func (w *watch) phase(ph phase, from time.Time, target int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &stage{phase: ph, from: from, target: target}
	if n := len(w.stages); n > 0 {
		s.before = w.stages[n-1].target
	}
	w.stages = append(w.stages, s)
}

// record adds an answer.
func (w *watch) record(a oracle.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.at(a.Cell, a.Region)
	r.Offered += a.Cost
	r.Entitlement, r.Share, r.Degraded = a.Entitlement, a.Share, a.Degraded
	if a.Outcome != oracle.Denied {
		r.Admitted += a.Cost
	}
	if len(w.stages) > 0 && a.Region == cutRegion {
		w.stages[len(w.stages)-1].see(a, w.window)
	}
}

// see notes when the cut region ran short, first gained a share, and reached its target.
func (s *stage) see(a oracle.Answer, window int64) {
	if a.Sent.Before(s.from) || a.Outcome == oracle.Unknown {
		return
	}
	if s.firstShare == 0 {
		s.firstShare = a.Share
	}
	if s.short.IsZero() && a.Outcome == oracle.Denied {
		s.short = a.Seen
	}
	if s.gained.IsZero() && a.Share > s.firstShare {
		s.gained = a.Seen
	}
	if s.reached.IsZero() && a.Share*20 >= s.targetOf(a.Cell, window)*19 {
		s.reached = a.Seen
	}
}

// targetOf returns the target share in a cell. In the cell in which the phase began, it is the mean
// of the two phases' targets, weighted by the time of each in the cell.
func (s *stage) targetOf(cell, window int64) int64 {
	before := max(s.from.UnixMicro()-cell*window, 0)
	return (s.before*before + s.target*(window-before)) / window
}

// at returns a region's part in a cell, and adds it if it is new.
func (w *watch) at(cell int64, region string) *RegionProgress {
	if w.cells[cell] == nil {
		w.cells[cell] = map[string]*RegionProgress{}
	}
	r := w.cells[cell][region]
	if r == nil {
		r = &RegionProgress{Name: region}
		w.cells[cell][region] = r
	}
	return r
}

// lastCell returns the last whole cell before a moment.
func (w *watch) lastCell(name string, elapsed time.Duration, now time.Time) Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Progress{Phase: name, Elapsed: elapsed, Limit: w.limit}
	cell := now.UnixMicro()/w.window - 1
	for _, r := range demoRegions {
		p.Regions = append(p.Regions, *w.at(cell, r.Name))
	}
	return p
}

// whole returns the cut region's part in each whole cell between two times, in order.
func (w *watch) whole(from, to time.Time) []RegionProgress {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := (from.UnixMicro() + w.window - 1) / w.window
	last := to.UnixMicro()/w.window - 1
	var all []RegionProgress
	for cell := first; cell <= last; cell++ {
		all = append(all, *w.at(cell, cutRegion))
	}
	return all
}
