package rivals

import (
	"container/heap"
	"math/rand/v2"
)

// clock is the virtual time of one run. Plans are carried out in the order of their times, and
// plans for the same time in the order in which they were made.
type clock struct {
	now     int64 // µs
	planned plans
	count   int
}

// plan is a function to run at a time.
type plan struct {
	at    int64
	order int
	do    func()
}

// after runs do after delay µs.
func (c *clock) after(delay int64, do func()) {
	heap.Push(&c.planned, plan{at: c.now + delay, order: c.count, do: do})
	c.count++
}

// every runs do after first µs, and then every period µs, for ever.
func (c *clock) every(first, period int64, do func()) {
	c.after(first, func() {
		do()
		c.every(period, period, do)
	})
}

// advance runs everything that is due at the time at or before.
func (c *clock) advance(at int64) {
	for len(c.planned) > 0 && c.planned[0].at <= at {
		due := heap.Pop(&c.planned).(plan)
		c.now = due.at
		due.do()
	}
	c.now = at
}

// plans is a heap with the next plan first.
type plans []plan

func (p plans) Len() int { return len(p) }
func (p plans) Less(i, j int) bool {
	return p[i].at < p[j].at || p[i].at == p[j].at && p[i].order < p[j].order
}
func (p plans) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *plans) Push(x any)   { *p = append(*p, x.(plan)) }
func (p *plans) Pop() any {
	last := len(*p) - 1
	due := (*p)[last]
	(*p)[last] = plan{}
	*p = (*p)[:last]
	return due
}

// source returns the random numbers of a system's run.
func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x62617365)) }
