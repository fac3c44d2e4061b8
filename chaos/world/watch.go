package world

import (
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/oracle"
)

// watch follows a story as it is played, beside the judge: what the last second looked like, what each region
// admitted in each cell, and how fast the cut region's share came to where it should. Safe for concurrent use.
type watch struct {
	limit  int64
	window int64 // microseconds

	mu      sync.Mutex
	regions map[string]*RegionProgress
	cells   map[int64]map[string]int64 // admitted, by cell and region
	stages  []*stage
}

// stage is what is seen of the cut region in a phase.
type stage struct {
	phase
	from       time.Time
	target     int64     // share it should come to
	firstShare int64     // the first share seen in the phase
	short      time.Time // when it was first denied
	gained     time.Time // when its share was first seen to grow after that
	reached    time.Time // when its share was first seen at 95 % of the target
}

func newWatch(limit int64, window time.Duration) *watch {
	w := &watch{limit: limit, window: window.Microseconds(), regions: map[string]*RegionProgress{}, cells: map[int64]map[string]int64{}}
	for _, r := range demoRegions {
		w.regions[r.Name] = &RegionProgress{Name: r.Name}
	}
	return w
}

func (w *watch) phase(ph phase, from time.Time, target int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stages = append(w.stages, &stage{phase: ph, from: from, target: target})
}

// record takes in an answer.
func (w *watch) record(a oracle.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.regions[a.Region]
	r.Offered += a.Cost
	r.Entitlement, r.Share, r.Degraded = a.Entitlement, a.Share, a.Degraded
	if a.Outcome != oracle.Denied {
		r.Admitted += a.Cost
		if w.cells[a.Cell] == nil {
			w.cells[a.Cell] = map[string]int64{}
		}
		w.cells[a.Cell][a.Region] += a.Cost
	}
	if len(w.stages) > 0 && a.Region == cutRegion {
		w.stages[len(w.stages)-1].see(a)
	}
}

// see follows the cut region's way from running short to the share it should have.
func (s *stage) see(a oracle.Answer) {
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
	if s.reached.IsZero() && a.Share*20 >= s.target*19 {
		s.reached = a.Seen
	}
}

// second returns what happened since the last call and begins anew.
func (w *watch) second(name string, elapsed time.Duration) Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Progress{Phase: name, Elapsed: elapsed, Limit: w.limit}
	for _, r := range demoRegions {
		now := w.regions[r.Name]
		p.Regions = append(p.Regions, *now)
		now.Offered, now.Admitted = 0, 0
	}
	return p
}

// admitted returns what the cut region admitted in each whole cell between two moments, in order.
func (w *watch) admitted(from, to time.Time) []int64 {
	first := (from.UnixMicro() + w.window - 1) / w.window
	last := to.UnixMicro()/w.window - 1
	var all []int64
	for cell := first; cell <= last; cell++ {
		all = append(all, w.cells[cell][cutRegion])
	}
	return slices.Clip(all)
}
