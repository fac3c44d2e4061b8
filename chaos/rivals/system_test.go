//go:build !race

package rivals

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/workload"
)

// mixed draws a short random workload with a limit of any algorithm.
func mixed(t *rapid.T) *workload.Workload {
	s := workload.Usual()
	s.Regions = rapid.IntRange(2, 5).Draw(t, "regions")
	s.Limit = rapid.SampledFrom([]int64{3, 10, 100}).Draw(t, "limit")
	s.Window = rapid.SampledFrom([]int64{workload.Second, 3 * workload.Second}).Draw(t, "window")
	s.Length = 3 * s.Window
	s.Algorithm = rapid.SampledFrom([]string{
		"fixed_window", "sliding_window_counter", "sliding_window_log", "token_bucket",
		"leaky_bucket",
	}).Draw(t, "algorithm")
	if s.Algorithm == "token_bucket" || s.Algorithm == "leaky_bucket" {
		s.Burst = max(1, s.Limit/rapid.Int64Range(1, 5).Draw(t, "burst"))
	}
	w, err := workload.Make(rapid.SampledFrom(workload.Names()).Draw(t, "demand"), s,
		rapid.Uint64().Draw(t, "seed"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// apart is a network of random latencies, different in each direction.
func apart(t *rapid.T, regions int) Network {
	n := Uniform(regions, 0)
	for i := range n.OneWay {
		for j := range n.OneWay {
			if i != j {
				n.OneWay[i][j] = rapid.Int64Range(0, 300_000).Draw(t, "one way")
			}
		}
	}
	return n
}

// Systems that cannot exceed the limit do not, whoever judges them. The pooled oracle loses
// nothing. The meters of this package agree with the oracle's, also for systems that do exceed the
// limit.
func TestSystemsOnRandomWorkloads(t *testing.T) {
	exact := []string{PooledOracle{}.Name(), StaticSplit{}.Name(), CentralBucket{}.Name()}
	suite.Check(t, func(t *rapid.T) {
		w := mixed(t)
		n := apart(t, w.Regions)
		for _, s := range Systems() {
			r := s.Run(w, n, 1)
			f := Measure(w, r, n)
			var worst int64
			for _, units := range excesses(w, r) {
				worst = max(worst, units)
			}
			if partOf(worst, w.Limit) != f.OvershootMax {
				t.Errorf("%s: the worst cell exceeds by %d units, by the oracle's account by %s",
					s.Name(), worst, f.OvershootMax)
			}
			if slices.Contains(exact, s.Name()) && worst != 0 {
				t.Errorf("%s exceeds by %d", s.Name(), worst)
			}
			if s.Name() == "pooled oracle" && (f.FalseDenials != 0 || f.Admitted != f.Pooled ||
				f.Late+f.Split != 0) {
				t.Errorf("the pooled oracle loses something to itself: %+v", f)
			}
			if f.Late+f.Split != f.FalseDenials || f.Late < 0 || f.Split < 0 {
				t.Errorf("%s: %d late and %d split are not the %d false denials", s.Name(), f.Late,
					f.Split, f.FalseDenials)
			}
			checkShares(t, s, w, r)
		}
	})
}

// checkShares wants samples at least every 100 ms, in order.
func checkShares(t *rapid.T, s System, w *workload.Workload, r Result) {
	last := int64(0)
	for _, sample := range r.Shares {
		if sample.At < last || sample.At > last+100_000 || len(sample.Share) != w.Regions {
			t.Fatalf("%s: a sample at %d µs follows one at %d µs", s.Name(), sample.At, last)
		}
		last = sample.At
	}
	if len(r.Shares) > 0 && last <= w.Length-100_000 {
		t.Fatalf("%s: the last sample is at %d µs of %d", s.Name(), last, w.Length)
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		w, seed := mixed(t), rapid.Uint64().Draw(t, "seed of the systems")
		n := apart(t, w.Regions)
		for _, s := range Systems() {
			if !reflect.DeepEqual(s.Run(w, n, seed), s.Run(w, n, seed)) {
				t.Fatalf("%s did two things with one seed", s.Name())
			}
		}
	})
}
