//go:build !race

package workload

import (
	"math"
	"slices"
	"testing"
)

// The distribution is compared with 1 - exp(-x) at every drawn point (Kolmogorov and Smirnov). One
// in a thousand seeds exceeds 1.95 / sqrt(n); this is one seed.
func TestGapsAreExponential(t *testing.T) {
	const n = 200_000
	random := source(5, 0)
	drawn := make([]float64, n)
	for i := range drawn {
		drawn[i] = float64(exponential(random)) / one
	}
	slices.Sort(drawn)
	var worst float64
	for i, x := range drawn {
		p := 1 - math.Exp(-x)
		worst = max(worst, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
	}
	if worst > 1.95/math.Sqrt(n) {
		t.Errorf("the distribution is %.5f away from the exponential", worst)
	}
}

// Counts of a Poisson process have their mean as variance.
func TestArrivalsArePoisson(t *testing.T) {
	for _, rate := range []int64{5, 1000, 2_000_000} { // a second
		const seconds = 400
		counts := make([]float64, seconds)
		length := int64(seconds) * Second
		slot := Second
		if rate > 1000 { // fewer of them, faster
			length, slot = length/10_000, Second/10_000
		}
		mean := float64(rate) * float64(slot) / Second
		for _, a := range Draw(9, Costs{Unit: 1}, Piece{To: length, Rate: 1000 * rate}) {
			counts[a.At/int64(slot)]++
		}
		var sum, squares float64
		for _, c := range counts {
			sum += c
			squares += (c - mean) * (c - mean)
		}
		if got := sum / seconds; math.Abs(got-mean) > 4*math.Sqrt(mean/seconds) {
			t.Errorf("%d a second: %.2f in a slot, want %.2f", rate, got, mean)
		}
		if ratio := squares / seconds / mean; ratio < 0.7 || ratio > 1.3 {
			t.Errorf("%d a second: variance is %.2f of the mean", rate, ratio)
		}
	}
}

func TestCostsCarryEqualPartsByOctave(t *testing.T) {
	const n = 400_000
	c := Costs{Unit: 3, Octaves: 4}
	random := source(2, 0)
	units := map[int64]int64{}
	var sum int64
	for range n {
		cost := c.draw(random)
		units[cost] += cost
		sum += cost
	}
	if len(units) != 5 || c.most() != 48 {
		t.Fatalf("costs %v, largest %d", units, c.most())
	}
	if mean := float64(sum) / n; math.Abs(mean-9) > 0.1 || c.mean() != 9<<20 {
		t.Errorf("mean cost %.2f, want 9 = 3 * (4 + 2) / 2", mean)
	}
	for cost, got := range units {
		want := 1.5 * n
		if cost == 48 {
			want = 3 * n // with the rest of the tail
		}
		if math.Abs(float64(got)/want-1) > 0.05 {
			t.Errorf("costs of %d carry %d units, want %.0f", cost, got, want)
		}
	}
}

func TestDrawKeepsToThePieces(t *testing.T) {
	pieces := []Piece{
		{Region: 1, From: 100, To: 200, Rate: 1_000_000_000},
		{Region: 0, From: 150, To: 250, Rate: 1_000_000_000},
		{Region: 2, From: 0, To: Second, Rate: 0},
		{Region: 2, From: 300, To: 300, Rate: 1 << 40},
		{Region: 2, From: 0, To: Second, Rate: 1}, // one in a thousand seconds
	}
	arrivals := Draw(1, Costs{Unit: 1}, pieces...)
	if len(arrivals) < 120 {
		t.Fatalf("%d arrivals", len(arrivals))
	}
	for i, a := range arrivals {
		p := pieces[1-a.Region] // region 2 is asked nothing
		if a.At < p.From || a.At >= p.To || i > 0 && arrivals[i-1].At > a.At {
			t.Errorf("arrival %d %+v is out of place", i, a)
		}
	}
}

// TestLargeCostsFollowPareto: for each cost 2^-1.2 as many are twice as large, the largest are cut
// off, and the mean is what the demand counts on.
func TestLargeCostsFollowPareto(t *testing.T) {
	const n = 2_000_000
	for _, most := range []int64{2, 3, 100, 500, 512} {
		c := Costs{Unit: 1, Most: most}
		random := source(3, 0)
		var sum, tens, twenties int64
		for range n {
			cost := c.draw(random)
			if cost < 1 || cost > most {
				t.Fatalf("a cost of %d, of at most %d", cost, most)
			}
			sum += cost
			if cost >= 16 {
				tens++
			}
			if cost >= 32 {
				twenties++
			}
		}
		if mean, want := float64(sum)/n, float64(c.mean())/(1<<20); math.Abs(mean/want-1) > 0.02 {
			t.Errorf("at most %d: a mean of %.3f, want %.3f", most, mean, want)
		}
		if part := float64(twenties) / float64(max(tens, 1)); most >= 100 && math.Abs(part-0.435) > 0.03 {
			t.Errorf("at most %d: %.3f as many costs are twice as large, want 0.435", most, part)
		}
	}
}
