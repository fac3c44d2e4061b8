package workload

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Piece is a stretch of steady demand in one region. Pieces of one region may
// overlap; then their rates add up.
type Piece struct {
	Region int
	// From and To bound it, in µs: at From or later, and before To.
	From, To int64
	// Rate is the mean demand in thousandths of a unit per second, 0 or more.
	Rate int64
}

// Draw draws the requests of a demand from a seed: in each piece Poisson
// arrivals at its rate, with costs drawn independently. They are sorted as
// Workload.Arrivals. The same arguments give the same requests everywhere.
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

// draw appends the requests of one piece. The time between two is kept in parts
// of 2^-20 µs, so that a fast stream is not slowed by rounding.
func (p Piece) draw(arrivals []Arrival, random *rand.Rand, costs Costs) []Arrival {
	if p.Rate <= 0 || p.From >= p.To {
		return arrivals
	}
	const fine = 20
	spacing := wait(p.Rate, costs.doubleMean())
	for at := int64(0); ; {
		at += gap(random, spacing)
		if at>>fine >= p.To-p.From {
			return arrivals
		}
		arrivals = append(arrivals, Arrival{At: p.From + at>>fine, Region: p.Region, Cost: costs.draw(random)})
	}
}

// wait is the mean time between two requests in parts of 2^-20 µs: the mean
// cost, given doubled, by the rate. It is held below 2^60, some 12 days.
func wait(rate, doubleMean int64) int64 {
	const most = 1 << 60
	hi, lo := bits.Mul64(uint64(doubleMean), 1000*Second<<19)
	if hi >= uint64(rate) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(rate))
	return int64(min(q, most))
}

// gap draws the time to the next request, an exponential of the mean spacing,
// held below 2^62.
func gap(random *rand.Rand, spacing int64) int64 {
	hi, lo := bits.Mul64(uint64(exponential(random)), uint64(spacing))
	if hi >= 1<<30 {
		return 1 << 62
	}
	return int64(hi<<32 | lo>>32)
}

// steady is one piece for each region over all of from to to.
func steady(from, to int64, rates []int64) []Piece {
	var pieces []Piece
	for region, rate := range rates {
		pieces = append(pieces, Piece{Region: region, From: from, To: to, Rate: rate})
	}
	return pieces
}
