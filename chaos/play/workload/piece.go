package workload

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Piece is a time of steady demand in one region. The rates of overlapping pieces of a region add
// up.
type Piece struct {
	Region int
	// From and To bound it, in µs: at From or later, and before To.
	From, To int64
	// Rate is the mean demand in thousandths of a unit per second, 0 or more.
	Rate int64
}

// Draw draws the requests of a demand from a seed: in each piece Poisson arrivals at its rate, with
// costs drawn independently. They are sorted as Workload.Arrivals. The same arguments give the same
// requests on every machine.
func Draw(seed uint64, costs Costs, pieces ...Piece) []Arrival {
	var arrivals []Arrival
	for i, p := range pieces {
		arrivals = p.draw(arrivals, source(seed, uint64(i)), costs)
	}
	slices.SortStableFunc(arrivals, func(a, b Arrival) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Region, b.Region))
	})
	return arrivals
}

// draw appends the requests of one piece. The time between two requests is computed in parts of
// 2^-20 µs, so that rounding does not slow a fast stream.
func (p Piece) draw(arrivals []Arrival, random *rand.Rand, costs Costs) []Arrival {
	if p.Rate <= 0 || p.From >= p.To {
		return arrivals
	}
	const fine = 20
	spacing := wait(p.Rate, costs.mean())
	for at := int64(0); ; {
		at += gap(random, spacing)
		if at>>fine >= p.To-p.From {
			return arrivals
		}
		arrivals = append(arrivals, Arrival{At: p.From + at>>fine, Region: p.Region,
			Cost: costs.draw(random)})
	}
}

// wait returns the mean time between two requests in parts of 2^-20 µs: the mean cost, in parts of 2^-20,
// divided by the rate. It is limited to 2^60, some 12 days.
func wait(rate, mean int64) int64 {
	const most = 1 << 60
	hi, lo := bits.Mul64(uint64(mean), 1000*Second)
	if hi >= uint64(rate) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(rate))
	return int64(min(q, most))
}

// gap draws the time to the next request from the exponential distribution with the mean spacing,
// limited to 2^62.
func gap(random *rand.Rand, spacing int64) int64 {
	hi, lo := bits.Mul64(uint64(exponential(random)), uint64(spacing))
	if hi >= 1<<30 {
		return 1 << 62
	}
	return int64(hi<<32 | lo>>32)
}

// steady returns one piece for each region, all of them from from to to.
func steady(from, to int64, rates []int64) []Piece {
	var pieces []Piece
	for region, rate := range rates {
		pieces = append(pieces, Piece{Region: region, From: from, To: to, Rate: rate})
	}
	return pieces
}
