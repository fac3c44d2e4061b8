package baseline

import (
	"math/rand/v2"

	"github.com/quotad/quotad/chaos/workload"
)

// fraction is one unit in the estimates below, which are units per window.
const fraction = 1 << 10

// rumours is what the limiters of Raghavan et al. know of each other: each tells
// a number (its estimated demand, or its weight) to a few others every interval,
// with the newest that it knows of everybody else.
//
// Of the paper's gossip this takes the interval, the branching factor of 3 and
// the random choice of whom to tell. The paper spreads sums by push-sum; here
// each number is spread by itself, newest first, which is more exact at the same
// number of messages, though not with thousands of limiters. With up to four
// regions everybody is told each time.
type rumours struct {
	c      *clock
	n      Network
	random *rand.Rand
	known  [][]rumour // by who knows, about whom
	result *Result
}

// rumour is a number and when it was true.
type rumour struct{ value, at int64 }

// branching is how many others are told each time.
const branching = 3

// newRumours starts with everybody knowing the same first number of everybody.
func newRumours(c *clock, n Network, random *rand.Rand, first []int64, result *Result) *rumours {
	g := &rumours{c: c, n: n, random: random, result: result}
	for range first {
		known := make([]rumour, len(first))
		for i, v := range first {
			known[i] = rumour{value: v, at: -1}
		}
		g.known = append(g.known, known)
	}
	return g
}

// tell sets a region's own number and sends what it knows to some others.
func (g *rumours) tell(region int, value int64) {
	g.known[region][region] = rumour{value: value, at: g.c.now}
	told := append([]rumour(nil), g.known[region]...)
	others := g.random.Perm(len(g.known) - 1)
	for _, other := range others[:min(branching, len(others))] {
		if other >= region {
			other++
		}
		g.result.Messages++
		g.result.Bytes += headers + key + 16*int64(len(told))
		g.c.after(g.n.OneWay[region][other], func() { g.hear(other, told) })
	}
}

// hear keeps the newer of each number.
func (g *rumours) hear(region int, told []rumour) {
	for i, r := range told {
		if r.at > g.known[region][i].at {
			g.known[region][i] = r
		}
	}
}

// others is the sum of what a region knows of the others' numbers.
func (g *rumours) others(region int) int64 {
	var sum int64
	for i, r := range g.known[region] {
		if i != region {
			sum += r.value
		}
	}
	return sum
}

// estimate is one region's arrival rate by an exponential average, in which a
// new interval weighs a tenth: units per window, times fraction.
type estimate struct{ asked, rate int64 }

// count takes a request into the interval.
func (e *estimate) count(units int64) { e.asked += units }

// finish ends an interval of so many µs.
func (e *estimate) finish(window, interval int64) {
	e.rate += (mulDiv(e.asked*fraction, window, interval) - e.rate) / 10
	e.asked = 0
}

// every50 is the interval of both schemes, or the one that is given.
func every50(interval int64) int64 {
	if interval == 0 {
		return workload.Second / 20
	}
	return interval
}
