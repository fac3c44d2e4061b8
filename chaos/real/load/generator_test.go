package load

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// tape records when requests were made, as time since its beginning.
type tape struct {
	begun time.Time
	mu    sync.Mutex
	made  []time.Duration
	index []uint64
}

func newTape() *tape { return &tape{begun: time.Now()} }

func (p *tape) do(_ context.Context, r Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, time.Since(p.begun))
	p.index = append(p.index, r.Index)
}

// start makes a generator and runs it until stop is called, which returns when
// Run has.
func start(t *testing.T, c Config) (g *Generator, stop func()) {
	t.Helper()
	g, err := NewGenerator(c)
	suite.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	return g, func() {
		cancel()
		suite.Must(t, <-done)
	}
}

func TestEverySecondHoldsTheRate(t *testing.T) {
	for _, perSecond := range []int64{1, 7, 150, 199, 200, 201, 210, 333, 1000, 3001} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newTape()
				g, stop := start(t, Config{Region: "eu", Seed: uint64(perSecond),
					Rate: Rate(perSecond), Do: p.do})
				time.Sleep(5 * time.Second)
				stop()
				// The first quantum only collects what falls due in it.
				for from := quantum; from < 4*time.Second; from += 1_234_567 {
					if n := within(p.made, from, from+time.Second); math.Abs(float64(n)-
						float64(perSecond)) > 1 {
						t.Fatalf("%d requests in the second from %v", n, from)
					}
				}
				if s := g.Stats(); s.Sent != int64(len(p.made)) || s.Due != s.Sent {
					t.Errorf("%d made, stats %+v", len(p.made), s)
				}
			})
		})
	}
}

func TestCostCountsTowardsTheRate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var units int64
		_, stop := start(t, Config{Region: "eu", Rate: Rate(100), Cost: 5,
			Do: func(_ context.Context, r Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Region != "eu" {
					t.Errorf("request for region %q", r.Region)
				}
				units += r.Cost
			}})
		time.Sleep(10 * time.Second)
		stop()
		if units < 995 || units > 1005 {
			t.Errorf("%d units in ten seconds at 100 per second", units)
		}
	})
}

func TestChangeOfRateTakesEffectAtOnce(t *testing.T) {
	for _, before := range []Rate{0, Rate(0.05), Rate(3), Rate(250)} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newTape()
				g, stop := start(t, Config{Region: "eu", Seed: 9, Rate: before, Do: p.do})
				time.Sleep(1503 * time.Millisecond)
				changed := time.Since(p.begun)
				g.SetRate(Rate(1000))
				time.Sleep(2 * time.Second)
				g.SetRate(-5) // as 0
				still := time.Since(p.begun)
				time.Sleep(2 * time.Second)
				stop()
				g.SetRate(Rate(1000)) // after the stop: nothing

				if n := within(p.made, changed, changed+10*time.Millisecond); n < 4 || n > 11 {
					t.Errorf("%d requests in the 10 ms after the change, want about 10 less a quantum", n)
				}
				if n := within(p.made, changed+10*time.Millisecond,
					still); math.Abs(float64(n)-1990) > 6 {
					t.Errorf("%d requests in 1.99 s", n)
				}
				if n := within(p.made, still+10*time.Millisecond, never); n != 0 {
					t.Errorf("%d requests after the rate was 0", n)
				}
				if s := g.Stats(); s.Behind != 0 || s.Due != int64(len(p.made)) {
					t.Errorf("%d made, stats %+v", len(p.made), s)
				}
			})
		})
	}
}

func TestSetRateBeforeRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newTape()
		g, err := NewGenerator(Config{Region: "eu", Do: p.do})
		if err != nil {
			t.Fatal(err)
		}
		g.SetRate(Rate(50))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		suite.Must(t, g.Run(ctx))
		if n := len(p.made); n < 99 || n > 101 {
			t.Errorf("%d requests in two seconds at 50 per second", n)
		}
		if err := g.Run(ctx); err == nil || !strings.Contains(err.Error(), "was run before") {
			t.Errorf("second run: %v", err)
		}
	})
}

func TestStuckRequestsAreBoundedAndCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		var under, most int
		g, stop := start(t, Config{Region: "eu", Rate: Rate(1000), MaxInFlight: 7,
			Do: func(context.Context, Request) {
				mu.Lock()
				under++
				most = max(most, under)
				mu.Unlock()
				<-release
				mu.Lock()
				under--
				mu.Unlock()
			}})
		time.Sleep(time.Second)
		s := g.Stats()
		if s.InFlight != 7 || s.Sent != 7 || s.Shed < 980 || s.Due != s.Sent+s.Shed {
			t.Errorf("stuck: %+v", s)
		}
		close(release)
		time.Sleep(time.Second)
		stop()
		after := g.Stats()
		if most != 7 || after.InFlight != 0 || after.Sent < 980 {
			t.Errorf("at most %d under way, %+v", most, after)
		}
		time.Sleep(time.Second)
		g.SetRate(Rate(5))
		if s := g.Stats(); s != after {
			t.Errorf("a generator that was stopped still counts: %+v, at the stop %+v", s, after)
		}
	})
}

// A synctest bubble fails if a goroutine remains when the test ends.
func TestStopWaitsOutTheGrace(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration // of a request, unless it is cancelled
		stops time.Duration // how long the stop takes at most
		cut   bool
	}{
		"requests finish in their own time":        {time.Second, time.Second, false},
		"stuck requests are cancelled after grace": {time.Hour, grace, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var cut atomic.Bool
				g, stop := start(t, Config{Region: "eu", Rate: 10, Do: func(ctx context.Context, _ Request) {
					select {
					case <-time.After(c.takes):
					case <-ctx.Done():
						cut.Store(true)
					}
				}})
				time.Sleep(2 * time.Second)
				before := time.Now()
				stop()
				if took := time.Since(before); took > c.stops || cut.Load() != c.cut {
					t.Errorf("the stop took %v, want at most %v; cut short: %v", took, c.stops, cut.Load())
				}
				if s := g.Stats(); s.InFlight != 0 {
					t.Errorf("after the stop: %+v", s)
				}
			})
		})
	}
}

// TestCatchesUpAfterAHiccup: a generator that could not run for a second sends what fell due
// meanwhile, at no more than four times its pace.
func TestCatchesUpAfterAHiccup(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newTape()
		g, stop := start(t, Config{Region: "eu", Rate: 1000, Do: p.do})
		time.Sleep(time.Second)
		g.mu.Lock()
		g.at = g.at.Add(-time.Second)
		g.mu.Unlock()
		held := time.Since(p.begun)
		time.Sleep(time.Second)
		stop()
		if n := within(p.made, held, held+100*time.Millisecond); n < 380 || n > 500 {
			t.Errorf("%d requests in the 100 ms after it, want about 400", n)
		}
		if s := g.Stats(); s.Sent < 2990 || s.Behind > 0 {
			t.Errorf("at the end %+v", s)
		}
	})
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) (made []time.Duration) {
		bubble.Test(t, func(t *testing.T) {
			p := newTape()
			g, stop := start(t, Config{Region: "eu", Seed: seed, Rate: Rate(40), Do: p.do})
			time.Sleep(time.Second)
			g.SetRate(Rate(700))
			time.Sleep(time.Second)
			g.SetRate(Rate(2.5))
			time.Sleep(3 * time.Second)
			stop()
			made = p.made
			slices.Sort(p.index)
			for i, index := range p.index {
				if index != uint64(i) {
					t.Fatalf("request %d has index %d", i, index)
				}
			}
		})
		return made
	}
	one := run(1)
	if !slices.Equal(one, run(1)) {
		t.Error("the same seed made another run")
	}
	if slices.Equal(one, run(2)) {
		t.Error("another seed made the same run")
	}
}

func TestNothingToDoIsRefused(t *testing.T) {
	if _, err := NewGenerator(Config{Region: "eu"}); err == nil || !strings.Contains(err.Error(), "set Do") {
		t.Errorf("got %v", err)
	}
}

// within counts the sorted times in from <= t < to.
func within(times []time.Duration, from, to time.Duration) int {
	a, _ := slices.BinarySearch(times, from)
	b, _ := slices.BinarySearch(times, to)
	return b - a
}
