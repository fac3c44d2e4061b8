package baseline

import (
	"math/rand/v2"

	"github.com/quotad/quotad/chaos/workload"
)

// fraction stands for one unit in the estimates below, which are units per window.
const fraction = 1 << 10

// rumours is what the limiters of Raghavan et al. know of each other. At each interval, each of
// them tells a number (its estimated demand, or its weight) to a few others, together with the
// newest numbers it knows of all others.
//
// The interval, the branching factor of 3 and the random choice of receivers are the paper's. The
// paper spreads sums by push-sum. Here each number is spread by itself, newest first. This is more
// exact with the same number of messages, but would not work with thousands of limiters. With up to
// four regions, every region is told each time.
type rumours struct {
	c      *clock
	n      Network
	random *rand.Rand
	known  [][]rumour // by knowing region, by region known about
	result *Result
}

// rumour is a number and the time at which it was true.
type rumour struct{ value, at int64 }

// branching is the number of regions that are told each time.
const branching = 3

// newRumours starts with all regions knowing the same first numbers.
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

// hear keeps the newer of each two numbers.
func (g *rumours) hear(region int, told []rumour) {
	for i, r := range told {
		if r.at > g.known[region][i].at {
			g.known[region][i] = r
		}
	}
}

// others returns the sum of the numbers of the others that a region knows.
func (g *rumours) others(region int) int64 {
	var sum int64
	for i, r := range g.known[region] {
		if i != region {
			sum += r.value
		}
	}
	return sum
}

// estimate is one region's arrival rate, in units per window, times fraction. It is an exponential
// average in which a new interval weighs a tenth.
type estimate struct{ asked, rate int64 }

// count adds a request to the interval.
func (e *estimate) count(units int64) { e.asked += units }

// finish ends an interval of so many µs.
func (e *estimate) finish(window, interval int64) {
	e.rate += (mulDiv(e.asked*fraction, window, interval) - e.rate) / 10
	e.asked = 0
}

// every50 returns interval, or, if that is 0, the interval of both schemes: 50 ms.
func every50(interval int64) int64 {
	if interval == 0 {
		return workload.Second / 20
	}
	return interval
}
