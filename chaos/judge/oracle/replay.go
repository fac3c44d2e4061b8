package oracle

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"strings"
)

// slot says where an answer is counted: in the phase in which it was sent, and in its region.
type slot struct {
	phase  int
	region string
}

// offered is the part of an answer that the replay keeps until its turn.
type offered struct {
	at, cell, cost int64
	outcome        Outcome
	slot           slot
	node           string
	sequence       uint64
}

// compareOffered orders answers as the pooled oracle is offered them. Answers of one microsecond
// have no true order. Names and numbers give them a fixed one, so that the result does not depend
// on the order of recording.
func compareOffered(a, b offered) int {
	return cmp.Or(
		cmp.Compare(a.at, b.at),
		strings.Compare(a.slot.region, b.slot.region),
		strings.Compare(a.node, b.node),
		cmp.Compare(a.sequence, b.sequence),
		cmp.Compare(a.cost, b.cost),
		cmp.Compare(a.slot.phase, b.slot.phase),
		cmp.Compare(a.outcome, b.outcome),
	)
}

// queue is a heap of answers that wait to be replayed, the earliest first.
type queue []offered

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return compareOffered(q[i], q[j]) < 0 }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(offered)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	o := (*q)[last]
	(*q)[last] = offered{}
	*q = (*q)[:last]
	return o
}

// replay runs the pooled oracle of one bucket, some time behind the recording.
type replay struct {
	pool    pool
	waiting queue
	last    offered // the latest one played
	played  bool
	late    int
	pooled  map[slot]int64 // units the pool admitted
	// memory is the length of a period in µs for kinds whose state does not end with a cell; 0 if
	// the periods are the cells.
	memory int64
	nets   map[int64]nets // by period
}

func newReplay(p pool, memory int64) *replay {
	return &replay{pool: p, memory: memory, pooled: map[slot]int64{}, nets: map[int64]nets{}}
}

// add queues one answer.
func (r *replay) add(o offered) {
	if r.played && compareOffered(o, r.last) < 0 {
		r.late++
	}
	heap.Push(&r.waiting, o)
}

// advance plays the waiting answers up to the store time until (µs, inclusive).
func (r *replay) advance(until int64) {
	for len(r.waiting) > 0 && r.waiting[0].at <= until {
		o := heap.Pop(&r.waiting).(offered)
		r.play(o)
		if !r.played || compareOffered(o, r.last) > 0 {
			r.last, r.played = o, true
		}
	}
}

// play offers one answer to the pool and compares the outcomes.
func (r *replay) play(o offered) {
	admits := r.pool.offer(o.cell, o.at, o.cost)
	if admits {
		r.pooled[o.slot] = add(r.pooled[o.slot], o.cost)
	}
	switch {
	case admits && o.outcome == Denied:
		r.book(r.periodOf(o), o.slot, o.cost)
	case !admits && o.outcome == Admitted:
		r.makeGood(o)
	}
}

// makeGood records units that we admitted and the pool did not. If the pool's state carries over
// from cell to cell, they count against lost units of the same period first, then of the one
// before.
func (r *replay) makeGood(o offered) {
	period, cost := r.periodOf(o), o.cost
	if r.memory > 0 {
		here, before := r.nets[period].lost(), r.nets[period-1].lost()
		back := min(max(0, cost-here), before)
		r.book(period-1, o.slot, -back)
		cost -= back
	}
	r.book(period, o.slot, -cost)
}

// periodOf returns the period of an answer.
func (r *replay) periodOf(o offered) int64 {
	if r.memory > 0 {
		return floorDiv(o.at, r.memory)
	}
	return o.cell
}

func (r *replay) book(period int64, s slot, units int64) {
	if units == 0 {
		return
	}
	n, ok := r.nets[period]
	if !ok {
		n = nets{}
		r.nets[period] = n
	}
	n[s] += units
}

// nets holds the nets of one period by slot: units that only the pool admitted, less units that
// only we admitted.
type nets map[slot]int64

// lost returns the false denials of the period.
func (n nets) lost() int64 {
	var sum int64
	for _, units := range n {
		sum += units
	}
	return max(0, sum)
}

// finished returns a copy in which all waiting answers have been played. The original goes on
// waiting for answers still to come.
func (r *replay) finished() *replay {
	c := &replay{
		pool:    r.pool.clone(),
		waiting: slices.Clone(r.waiting),
		last:    r.last,
		played:  r.played,
		late:    r.late,
		memory:  r.memory,
		pooled:  maps.Clone(r.pooled),
		nets:    make(map[int64]nets, len(r.nets)),
	}
	for period, n := range r.nets {
		c.nets[period] = maps.Clone(n)
	}
	for len(c.waiting) > 0 {
		c.play(heap.Pop(&c.waiting).(offered))
	}
	return c
}

// falseDenials splits each period's false denials among the slots by the rules of the package
// comment, and adds up the periods.
func (r *replay) falseDenials() map[slot]int64 {
	sum := map[slot]int64{}
	for _, n := range r.nets {
		for s, units := range attribute(n) {
			sum[s] = add(sum[s], units)
		}
	}
	return sum
}
