package sim

import (
	"cmp"
	"container/heap"
)

// occurrence is something that happens at a time.
type occurrence struct {
	at  int64 // µs since the start
	seq int   // of those at one time, the one that was put down first happens first
	do  func()
}

// agenda is what is still to happen, the earliest first.
type agenda struct {
	all  []occurrence
	last int
}

func (a *agenda) Len() int { return len(a.all) }
func (a *agenda) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a.all[i].at, a.all[j].at), cmp.Compare(a.all[i].seq, a.all[j].seq)) < 0
}
func (a *agenda) Swap(i, j int) { a.all[i], a.all[j] = a.all[j], a.all[i] }
func (a *agenda) Push(x any)    { a.all = append(a.all, x.(occurrence)) }
func (a *agenda) Pop() any {
	last := len(a.all) - 1
	o := a.all[last]
	a.all[last] = occurrence{}
	a.all = a.all[:last]
	return o
}

// put puts something down to happen at a time.
func (a *agenda) put(at int64, do func()) {
	a.last++
	heap.Push(a, occurrence{at, a.last, do})
}

// next takes the next one off, if it is not after a time.
func (a *agenda) next(until int64) (occurrence, bool) {
	if len(a.all) == 0 || a.all[0].at > until {
		return occurrence{}, false
	}
	return heap.Pop(a).(occurrence), true
}
