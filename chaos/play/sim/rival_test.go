//go:build !race

package sim

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/workload"
	"github.com/quotad/quotad/chaos/rivals"
)

// TestBudgets checks quotad's use of a limit on some demands (docs/explanation/comparison.md shows
// the rest): nothing is admitted above the limit, and the false denials stay below a budget, in
// parts per million.
func TestBudgets(t *testing.T) {
	short := workload.Usual()
	short.Length = 10 * workload.Second
	for name, c := range map[string]struct {
		demand    string
		algorithm algorithms.Kind
		window    int64 // seconds
		borrow    bool
		most      rivals.Millionths // of false denials
	}{
		"even at 0.8 L":  {"even-80", algorithms.FixedWindow, 1, false, 100},
		"even at 0.95 L": {"even-95", algorithms.FixedWindow, 1, false, 5_000},
		"all in one region": {"one-region", algorithms.FixedWindow, 1, false,
			10_000},
		"skewed":                    {"zipf", algorithms.FixedWindow, 1, false, 10_000},
		"skewed, by a token bucket": {"zipf", algorithms.TokenBucket, 1, false, 10_000},
		"skewed, borrowing":         {"zipf", algorithms.FixedWindow, 1, true, 5_000},
		"a step of 15x":             {"step", algorithms.FixedWindow, 1, false, 10_000},
		"a step of 15x by a sliding window": {"step", algorithms.SlidingWindowCounter, 1, false,
			15_000},
		"even at 0.9 L, by a counter": {"even-90", algorithms.SlidingWindowCounter, 1, false,
			5_000},
		"even at 0.9 L, by a log": {"even-90", algorithms.SlidingWindowLog, 1, false, 15_000},
		"skewed, by a counter": {"zipf", algorithms.SlidingWindowCounter, 1, false,
			25_000},
		"all in one region, by a queue": {"one-region", algorithms.LeakyBucket, 10, false, 50_000},
		"skewed, by a long queue":       {"zipf", algorithms.LeakyBucket, 60, false, 30_000},
		"skewed, by a log":              {"zipf", algorithms.SlidingWindowLog, 1, false, 30_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setting := short
			setting.Algorithm, setting.Window = string(c.algorithm), c.window*workload.Second
			setting.Length = max(setting.Length, 5*setting.Window)
			if c.algorithm.Bucket() {
				setting.Burst = setting.Limit / 5
			}
			w, err := workload.Make(c.demand, setting, 1)
			if err != nil {
				t.Fatal(err)
			}
			n := rivals.Uniform(w.Regions, 40_000)
			q := Quotad{Borrow: c.borrow}
			f := rivals.Measure(w, q.Run(w, n, 1), n)
			if f.OvershootMax > 0 || f.FalseRate > c.most {
				t.Errorf("%d ppm above the limit, %d ppm denied falsely; want 0 and at most %d",
					f.OvershootMax, f.FalseRate, c.most)
			}
		})
	}
}

// TestLargeCostsThatComeAgain: costs of up to half the limit, whose callers come again a second
// later, twice at most, are denied half as often at least as they were while such a cost counted as
// any denied units do.
func TestLargeCostsThatComeAgain(t *testing.T) {
	seeds := uint64(2)
	if !testing.Short() {
		seeds = 12
	}
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog, algorithms.TokenBucket} {
		for _, demand := range []string{"large-costs-80", "large-costs-95"} {
			t.Run(fmt.Sprint(kind, " ", demand), func(t *testing.T) {
				t.Parallel()
				setting := workload.Usual()
				setting.Algorithm, setting.Window = string(kind), 60*workload.Second
				setting.Length = 8 * setting.Window
				if kind.Bucket() {
					setting.Burst = setting.Limit
				}
				var with, without, pooled int64
				for seed := range seeds {
					w, err := workload.Make(demand, setting, 1+seed)
					suite.Must(t, err)
					n := rivals.Uniform(w.Regions, 40_000)
					measure := func(o exchange.Options) rivals.Figures {
						q := Quotad{Borrow: kind.Bucket(), Again: 2, Options: o}
						return rivals.Measure(w, q.Run(w, n, 1), n)
					}
					f, before := measure(exchange.Options{}), measure(exchange.Options{WithoutLarge: true})
					with, without, pooled = with+f.FalseDenials, without+before.FalseDenials, pooled+f.Pooled
					if f.OvershootMax > 0 {
						t.Errorf("seed %d: %s above the limit", seed, f.OvershootMax)
					}
				}
				percent := func(units int64) float64 { return 100 * float64(units) / float64(pooled) }
				t.Logf("false denials of %d units: %.1f %% with, %.1f %% without", pooled, percent(with), percent(without))
				if demand == "large-costs-80" && 2*with > without {
					t.Errorf("false denials of %d units: %d with, %d without", pooled, with, without)
				}
			})
		}
	}
}
