//go:build !race

package process

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// rule is what one limits document says of a limit: a fixed window, or with a burst a token_bucket.
type rule struct {
	units, burst int64
	window       time.Duration
}

// broken returns by how much admitted units break a rule at most. Of a window only those count that
// lie whole in one of some times. A token bucket is taken for full when such a time begins.
func (r rule) broken(all []admission, times []during) (most int64, when string) {
	for _, d := range times {
		some := all[first(all, d.from):first(all, d.to)]
		excess, at := r.worst(some, d)
		if excess > most {
			most, when = excess, time.UnixMicro(at).UTC().Format("15:04:05.000")
		}
	}
	return most, when
}

// worst returns by how much units of one time break the rule at most, and when.
func (r rule) worst(some []admission, d during) (most, at int64) {
	window := r.window.Microseconds()
	if r.burst == 0 {
		cells := map[int64]int64{}
		for _, a := range some {
			cell := a.at / window
			if cell*window < d.from || (cell+1)*window > d.to {
				continue
			}
			cells[cell] += a.cost
			if cells[cell]-r.units > most {
				most, at = cells[cell]-r.units, cell*window
			}
		}
		return most, at
	}
	// The level in units times the window, which is exact.
	level, last := r.burst*window, d.from
	for _, a := range some {
		level = min(level+(a.at-last)*r.units, r.burst*window) - a.cost*window
		last = a.at
		if excess := (-level + window - 1) / window; excess > most {
			most, at = excess, a.at
		}
	}
	return most, at
}

// admission is a unit, or several, that a region admitted, by the time of its store.
type admission struct{ at, cost int64 }

// first returns the place of the first admission that is not before a time.
func first(all []admission, at int64) int {
	i, _ := slices.BinarySearchFunc(all, at, func(a admission, at int64) int { return cmp.Compare(a.at, at) })
	return i
}

// during is a time, in microseconds since 1970.
type during struct{ from, to int64 }

// account keeps what all regions admitted of one key.
type account struct {
	mu         sync.Mutex
	all        []admission
	unanswered int64 // units of requests without an answer
	local      int64 // units admitted without a store
}

func (a *account) note(got oracle.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case got.Outcome == oracle.Admitted:
		a.all = append(a.all, admission{got.At, got.Cost})
	case got.Outcome == oracle.Unknown && got.Sequence == 0:
		a.unanswered += got.Cost
	case got.Outcome == oracle.Unknown:
		a.local += got.Cost
	}
}

// sorted returns the admissions in the order of their times.
func (a *account) sorted() []admission {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.all, func(x, y admission) int { return cmp.Compare(x.at, y.at) })
	return slices.Clone(a.all)
}

// admittedIn returns what was admitted in the whole windows of a time, a window.
func admittedIn(all []admission, d during, window time.Duration) (units float64) {
	w := window.Microseconds()
	from, to := (d.from+w-1)/w*w, d.to/w*w
	if to <= from {
		return 0
	}
	for _, a := range all[first(all, from):first(all, to)] {
		units += float64(a.cost)
	}
	return units / float64((to-from)/w)
}
