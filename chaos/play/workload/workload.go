package workload

import (
	"fmt"
	"math/bits"
)

// Second is a second in the package's unit of time, µs.
const Second = 1_000_000

// Arrival is one request.
type Arrival struct {
	// At is when it is made, in µs since the start of the run.
	At int64 `json:"at"`
	// Region is the number of the region in which it is made.
	Region int `json:"region"`
	// Cost is the units it asks for, 1 or more.
	Cost int64 `json:"cost"`
}

// Step is a sudden, lasting rise of demand in one region.
type Step struct {
	// At is when the demand rises, in µs since the start of the run.
	At int64 `json:"at"`
	// Region is the number of that region.
	Region int `json:"region"`
}

// Workload is one limit and all requests made of it. It is not changed once it is made; any number
// of goroutines may read it.
type Workload struct {
	// Name says what the demand looks like, and with which limit.
	Name string `json:"name"`
	// Regions is the number of regions.
	Regions int `json:"regions"`
	// Limit is the number of units of a window, over all regions. Burst is the capacity of a
	// token_bucket or leaky_bucket, 0 for the other algorithms.
	Limit int64 `json:"limit"`
	Burst int64 `json:"burst,omitempty"`
	// Window is the window in µs.
	Window int64 `json:"window"`
	// Algorithm is the limit's algorithm as the policy names it.
	Algorithm string `json:"algorithm"`
	// Entitlements are the regions' fixed splits of the limit. They add up to Limit.
	Entitlements []int64 `json:"entitlements"`
	// Length is the length of the run, in µs.
	Length int64 `json:"length"`
	// Step is the rise of demand after which the time to rebalance can be measured, or nil.
	Step *Step `json:"step,omitempty"`
	// Arrivals are the requests, by time, and within a microsecond by region.
	Arrivals []Arrival `json:"-"`
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
		units[i] = mulDiv(u, w.Window, to-from)
	}
	return units
}

// Validate returns an error that says what is wrong with the workload, or nil. The package makes
// only valid ones. Validate is for workloads made by hand.
func (w *Workload) Validate() error {
	s := Setting{Regions: w.Regions, Limit: w.Limit, Burst: w.Burst, Window: w.Window,
		Algorithm: w.Algorithm, Length: w.Length, RoundTrip: 1}
	if err := s.validate(); err != nil {
		return err
	}
	var sum int64
	for _, f := range w.Entitlements {
		if f < 0 {
			return fmt.Errorf("workload %q: an entitlement of %d units is negative: give 0 or more",
				w.Name, f)
		}
		sum += f
	}
	if len(w.Entitlements) != w.Regions || sum != w.Limit {
		return fmt.Errorf("workload %q: %d entitlements with a sum of %d do not split a limit of %d over %d regions: use Split", w.Name, len(w.Entitlements), sum, w.Limit, w.Regions)
	}
	if w.Step != nil && (w.Step.Region < 0 || w.Step.Region >= w.Regions || w.Step.At < 0 ||
		w.Step.At >= w.Length) {
		return fmt.Errorf("workload %q: a step at %d µs in region %d lies outside the run of %d µs and %d regions", w.Name, w.Step.At, w.Step.Region, w.Length, w.Regions)
	}
	last := int64(0)
	for i, a := range w.Arrivals {
		if a.At < last || a.At >= w.Length || a.Region < 0 || a.Region >= w.Regions || a.Cost < 1 {
			return fmt.Errorf("workload %q: arrival %d %+v is out of order or range: sort by time, and stay within %d µs and %d regions, with costs of 1 and more", w.Name, i, a, w.Length, w.Regions)
		}
		last = a.At
	}
	return nil
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

// mulDiv returns a * b / c rounded down, at most the largest number, for a, b >= 0 and c > 0.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, 1<<63-1))
}
