package load

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
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
					Rate: PerSecond(perSecond), Do: p.do})
				time.Sleep(5 * time.Second)
				stop()
				// The first quantum only collects what falls due in it.
				for from := Quantum; from < 4*time.Second; from += 1_234_567 {
					if n := within(p.made, from, from+time.Second); math.Abs(float64(n)-
						float64(perSecond)) > 1 {
						t.Fatalf("%d requests in the second from %v", n, from)
					}
				}
				if s := g.Stats(); s.Sent != int64(len(p.made)) || s.Due != s.Sent ||
					s.Wakes > 5*min(perSecond, 200)+10 {
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
		_, stop := start(t, Config{Region: "eu", Rate: PerSecond(100), Cost: 5,
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
	for _, before := range []Rate{0, Rate(50), PerSecond(3), PerSecond(250)} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newTape()
				g, stop := start(t, Config{Region: "eu", Seed: 9, Rate: before, Do: p.do})
				time.Sleep(1503 * time.Millisecond)
				changed := time.Since(p.begun)
				g.SetRate(PerSecond(1000))
				time.Sleep(2 * time.Second)
				g.SetRate(-5) // as 0
				still := time.Since(p.begun)
				time.Sleep(2 * time.Second)
				stop()
				g.SetRate(PerSecond(1000)) // after the stop: nothing

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
		suite.Must(t, err)
		g.SetRate(PerSecond(50))
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
		g, stop := start(t, Config{Region: "eu", Rate: PerSecond(1000), MaxInFlight: 7,
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
		g.SetRate(PerSecond(5))
		if s := g.Stats(); s != after {
			t.Errorf("a generator that was stopped still counts: %+v, at the stop %+v", s, after)
		}
	})
}

// A synctest bubble fails if a goroutine remains when the test ends.
func TestStopWaitsOutTheGrace(t *testing.T) {
	tests := []struct {
		name  string
		grace time.Duration
		takes time.Duration // of a request, unless it is cancelled
		stops time.Duration // how long the stop takes at most
		cut   bool
	}{
		{"requests finish in their own time", 0, time.Second, time.Second, false},
		{"stuck requests are cancelled after the default grace", 0, time.Hour, DefaultGrace, true},
		{"after the grace given", 2 * time.Second, time.Hour, 2 * time.Second, true},
		{"or at once", -1, time.Hour, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				cut := 0
				g, stop := start(t, Config{Region: "eu", Rate: PerSecond(10), Grace: tt.grace,
					Do: func(ctx context.Context, _ Request) {
						over := time.NewTimer(tt.takes)
						defer over.Stop()
						select {
						case <-over.C:
						case <-ctx.Done():
							mu.Lock()
							cut++
							mu.Unlock()
						}
					}})
				time.Sleep(2 * time.Second)
				before := time.Now()
				stop()
				if took := time.Since(before); took > tt.stops {
					t.Errorf("the stop took %v, want at most %v", took, tt.stops)
				}
				if (cut > 0) != tt.cut {
					t.Errorf("%d requests were cut short", cut)
				}
				if s := g.Stats(); s.InFlight != 0 {
					t.Errorf("after the stop: %+v", s)
				}
			})
		})
	}
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) (made []time.Duration) {
		bubble.Test(t, func(t *testing.T) {
			p := newTape()
			g, stop := start(t, Config{Region: "eu", Seed: seed, Rate: PerSecond(40), Do: p.do})
			time.Sleep(time.Second)
			g.SetRate(PerSecond(700))
			time.Sleep(time.Second)
			g.SetRate(Rate(2500))
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

func TestConfigurationsThatCannotRun(t *testing.T) {
	tests := []struct {
		name string
		bend func(c *Config)
		says string
	}{
		{"nothing to do", func(c *Config) { c.Do = nil }, "set Do"},
		{"negative rate", func(c *Config) { c.Rate = -1 }, "rate of -1"},
		{"rate beyond reason", func(c *Config) { c.Rate = MaxRate + 1 }, "give 0 to 1000000000"},
		{"negative cost", func(c *Config) { c.Cost = -1 }, "cost of -1"},
		{"cost beyond reason", func(c *Config) { c.Cost = MaxCost + 1 }, "give 1 to"},
		{"negative bound", func(c *Config) { c.MaxInFlight = -1 }, "-1 requests under way"},
		{"negative burst", func(c *Config) { c.Burst = -1 }, "burst of -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Region: "eu", Do: newTape().do}
			tt.bend(&c)
			if _, err := NewGenerator(c); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want something about %q", err, tt.says)
			}
		})
	}
}
