package queue

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/memory/rules"
)

// group puts requests on the same buckets and under the same limits together, in order of arrival.
// A group that is full is followed by another. The groups use the batch's memory.
func group(batch []Ask) [][]Ask {
	groups, sizes := make([][]Ask, 0, len(batch)), make([]algorithms.Batch, 0, len(batch))
	type on struct { // requests that differ in it share no item
		rules  *rules.Rules
		hash   uint64
		charge bool
	}
	index := make(map[on]int, len(batch)) // the last group of each
	for n := range batch {
		w := &batch[n]
		if w.gone != nil && w.gone.Load() {
			continue
		}
		its := on{w.Rules, w.hash, w.Charge}
		i, known := index[its]
		if known && groups[i][0].shares(w) && sizes[i].Add(w.Cost) {
			groups[i] = append(groups[i], *w)
			continue
		}
		if w.joins() {
			index[its] = len(groups)
		}
		groups, sizes = append(groups, batch[n:n+1:n+1]), append(sizes, w.batch())
	}
	return groups
}

// joins reports whether a request may share an item. A peek may not, because it must not see the
// costs of other requests. A request with an id may not, because the store remembers its answer
// alone, nor one with a cost for each limit, nor one whose units are no demand.
func (w *Ask) joins() bool { return w.Commit && w.Once == "" && !w.Ahead && !w.Apart() }

// shares reports whether two requests share an item of a script call.
func (w *Ask) shares(other *Ask) bool {
	if !w.joins() || !other.joins() || w.hash != other.hash || w.Charge != other.Charge || w.Rules != other.Rules || len(w.Applied) != len(other.Applied) {
		return false
	}
	for i, a := range w.Applied {
		its := other.Applied[i]
		if a != its && (a.Limit != its.Limit || a.Target.Key != its.Target.Key) {
			return false
		}
	}
	return true
}

// batch returns the load of an item that has this request as its first.
func (w *Ask) batch() (b algorithms.Batch) {
	for _, a := range w.Applied {
		b.Counts(a.Target.Terms.Kind)
	}
	b.Add(w.Cost)
	return b
}
