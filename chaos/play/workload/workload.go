package workload

import (
	"math/bits"
)

// Second is a second in the package's unit of time, µs.
const Second = 1_000_000

// Arrival is one request.
type Arrival struct {
	// At is when it is made, in µs since the start of the run.
	At int64
	// Region is the number of the region in which it is made.
	Region int
	// Cost is the units it asks for, 1 or more.
	Cost int64
}

// Step is a sudden, lasting rise of demand in one region.
type Step struct {
	// At is when the demand rises, in µs since the start of the run.
	At int64
	// Region is the number of that region.
	Region int
}

// Workload is one limit and all requests made of it. It is not changed once it is made; any number
// of goroutines may read it.
type Workload struct {
	// Name says what the demand looks like, and with which limit.
	Name string
	// Regions is the number of regions.
	Regions int
	// Limit is the number of units of a window, over all regions. Burst is the capacity of a
	// token_bucket or leaky_bucket, 0 for the other algorithms.
	Limit int64
	Burst int64
	// Window is the window in µs.
	Window int64
	// Algorithm is the limit's algorithm as the policy names it.
	Algorithm string
	// Entitlements are the regions' fixed splits of the limit. They add up to Limit.
	Entitlements []int64
	// Length is the length of the run, in µs.
	Length int64
	// Step is the rise of demand after which the time to rebalance can be measured, or nil.
	Step *Step
	// Arrivals are the requests, by time, and within a microsecond by region.
	Arrivals []Arrival
}

// Offered returns the units that each region is asked for at from or later, and before to (µs).
func (w *Workload) Offered(from, to int64) []int64 {
	units := make([]int64, w.Regions)
	for _, a := range w.Arrivals {
		if a.At >= to {
			break
		}
		if a.At >= from {
			units[a.Region] += a.Cost
		}
	}
	return units
}

// Demand returns the units per window that each region is asked for between from and to (µs, to >
// from), rounded down.
func (w *Workload) Demand(from, to int64) []int64 {
	units := w.Offered(from, to)
	for i, u := range units {
		units[i] = MulDiv(u, w.Window, to-from)
	}
	return units
}

// Split divides units by weight, by largest remainder; of equal remainders the first wins. The
// parts add up to units. Units and weights must not be negative, and at least one weight must be
// positive.
func Split(units int64, weights []int64) []int64 {
	var sum int64
	for _, w := range weights {
		sum += w
	}
	parts, rests := make([]int64, len(weights)), make([]uint64, len(weights))
	left := units
	for i, w := range weights {
		hi, lo := bits.Mul64(uint64(units), uint64(w))
		q, rest := bits.Div64(hi, lo, uint64(sum))
		parts[i], rests[i] = int64(q), rest
		left -= int64(q)
	}
	for ; left > 0; left-- {
		largest := 0
		for i, rest := range rests {
			if rest > rests[largest] {
				largest = i
			}
		}
		parts[largest]++
		rests[largest] = 0
	}
	return parts
}

// MulDiv returns a * b / c rounded down, at most the largest number, for a, b >= 0 and c > 0.
func MulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, 1<<63-1))
}
