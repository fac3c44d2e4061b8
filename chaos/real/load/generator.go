package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Rate is an offered load in thousandths of a unit per second: PerSecond(1000) is a thousand units
// a second, Rate(50) one unit in twenty seconds. Zero offers nothing.
type Rate int64

// MaxRate is the highest rate of a generator.
const MaxRate = Rate(1_000_000_000) // a million units a second

// MaxCost is the largest cost of one request, in units.
const MaxCost = 1 << 40

// PerSecond returns the rate of so many whole units a second, limited to 0..MaxRate.
func PerSecond(units int64) Rate {
	return Rate(min(max(units, 0), int64(MaxRate)/1000)) * 1000
}

// DefaultMaxInFlight and DefaultGrace are used for zero values of Config.
const (
	DefaultMaxInFlight = 10_000
	DefaultGrace       = 5 * time.Second
)

// Request is one request to be made.
type Request struct {
	Region string
	Cost   int64
	// Index numbers the requests of a generator from 0, in the order in which they fell due,
	// including those that were shed.
	Index uint64
}

// Config configures a generator.
type Config struct {
	// Region is passed on with each request.
	Region string
	// Seed gives the first offset and the jitter of the schedule. Regions
	// should have different ones.
	Seed uint64
	// Rate is the rate at the start; Generator.SetRate changes it.
	Rate Rate
	// Cost is what each request costs, in units, 1 to MaxCost; 0 stands for 1.
	Cost int64
	// MaxInFlight is the maximum number of requests under way. Requests that fall due beyond it are
	// shed and counted. 0: DefaultMaxInFlight.
	MaxInFlight int
	// Burst is the maximum number of requests sent in one Quantum, also after a delay. If it is
	// lower than the pace needs, the generator falls behind for ever, which Stats shows. 0: four
	// times the even pace at the present rate, at least 4.
	Burst int
	// Grace is how long requests under way may go on after a stop before their context is
	// cancelled. A cancelled request has an unknown outcome, so the grace should exceed the
	// requests' own timeout. 0: DefaultGrace. If it is negative they are cancelled at once.
	Grace time.Duration
	// Do makes one request, in a goroutine of its own. It must return when its context is done.
	Do func(ctx context.Context, r Request)
}

// Stats counts what a generator did since its start. Every request that fell due was sent, was
// shed, or is behind: Due = Sent + Shed + Behind.
type Stats struct {
	Due      int64 // requests that have fallen due
	Sent     int64 // passed to Do
	Shed     int64 // not sent, because MaxInFlight were under way
	Behind   int64 // due and still to be sent
	InFlight int   // passed to Do, which has not returned yet
	Wakes    int64 // number of wake-ups
}

// Generator offers load to one region. Its methods are safe for concurrent use.
type Generator struct {
	config  Config
	changed chan struct{} // wakes Run after a change of rate
	flying  sync.WaitGroup

	mu      sync.Mutex
	pacer   pacer
	start   time.Time // start of the run; zero before it
	index   uint64
	stopped bool
	stats   Stats
}

// NewGenerator returns a generator for Run to start, or an error that says what is wrong with the
// configuration.
func NewGenerator(c Config) (*Generator, error) {
	if c.Cost == 0 {
		c.Cost = 1
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	switch {
	case c.Do == nil:
		return nil, fmt.Errorf("load: the generator of region %q has nothing to do: set Do",
			c.Region)
	case c.Rate < 0 || c.Rate > MaxRate:
		return nil, fmt.Errorf(
			"load: region %q has a rate of %d thousandths of a unit per second: give 0 to %d",
			c.Region, c.Rate, MaxRate)
	case c.Cost < 0 || c.Cost > MaxCost:
		return nil, fmt.Errorf("load: region %q has a cost of %d units: give 1 to %d", c.Region,
			c.Cost, int64(MaxCost))
	case c.MaxInFlight < 0:
		return nil, fmt.Errorf(
			"load: region %q may have %d requests under way: give 1 or more, or 0 for %d", c.Region,
			c.MaxInFlight, DefaultMaxInFlight)
	case c.Burst < 0:
		return nil, fmt.Errorf(
			"load: region %q has a burst of %d: give 1 or more, or 0 for four times the pace",
			c.Region, c.Burst)
	}
	return &Generator{
		config:  c,
		changed: make(chan struct{}, 1),
		pacer:   pacer{schedule: newSchedule(c.Seed, c.Cost), burst: int64(c.Burst)},
	}, nil
}

// SetRate changes the rate from now on. Requests that fell due before are still sent. A rate below
// 0 counts as 0, one above MaxRate as MaxRate.
func (g *Generator) SetRate(r Rate) {
	r = min(max(r, 0), MaxRate)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Rate = r
	if g.start.IsZero() || g.stopped {
		return
	}
	g.pacer.setRate(time.Since(g.start), r)
	select {
	case g.changed <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// Stats returns the counts as of the generator's last wake-up.
func (g *Generator) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Behind = g.pacer.behind
	s.Due = s.Sent + s.Shed + s.Behind
	return s
}

// Run offers load until ctx is done. Then it waits for the requests under way, and cancels those
// that outlast the grace. It leaves no goroutine behind. A stop is not an error; the only error is
// that the generator ran before.
func (g *Generator) Run(ctx context.Context) error {
	if err := g.begin(); err != nil {
		return err
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			g.end(cancel)
			return nil
		case <-g.changed:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			continue // both were ready: send nothing after the stop
		}
		if wait := g.wake(requests); wait == never {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
	}
}

// begin starts the schedule.
func (g *Generator) begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.start.IsZero() {
		return errors.New("load: this generator of region " + g.config.Region +
			" was run before: make a new one for each run")
	}
	g.start = time.Now()
	g.pacer.setRate(0, g.config.Rate)
	return nil
}

// end waits for the requests under way, and cancels them after the grace.
func (g *Generator) end(cancel context.CancelFunc) {
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	if g.config.Grace < 0 {
		cancel()
	} else {
		grace := time.AfterFunc(g.config.Grace, cancel)
		defer grace.Stop()
	}
	g.flying.Wait()
}

// wake sends what is due and returns the time until the next wake-up.
func (g *Generator) wake(requests context.Context) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Since(g.start)
	g.stats.Wakes++
	for range g.pacer.take(now) {
		g.send(requests)
	}
	at := g.pacer.wake(now)
	if at == never {
		return never
	}
	return max(0, at-now)
}

// send starts one request, or sheds it. The caller holds the lock.
func (g *Generator) send(requests context.Context) {
	r := Request{Region: g.config.Region, Cost: g.config.Cost, Index: g.index}
	g.index++
	if g.stats.InFlight >= g.config.MaxInFlight {
		g.stats.Shed++
		return
	}
	g.stats.Sent++
	g.stats.InFlight++
	g.flying.Go(func() {
		defer g.landed()
		g.config.Do(requests, r)
	})
}

// landed counts a finished request.
func (g *Generator) landed() {
	g.mu.Lock()
	g.stats.InFlight--
	g.mu.Unlock()
}
