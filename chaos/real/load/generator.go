package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Rate is an offered load in units a second. Zero offers nothing.
type Rate float64

const (
	// quantum is the shortest time between two wake-ups of a generator that keeps its pace.
	quantum = 5 * time.Millisecond
	// jitter is the part of the spacing by which a request is moved at most, to either side. It does
	// not accumulate, so any second holds the rate, give or take one request.
	jitter = 0.03
	// grace is how long requests under way may go on after a stop before their context is
	// cancelled. A cancelled request has an unknown outcome, so this exceeds the requests' own
	// timeouts.
	grace = 5 * time.Second
	// never is the time until the next request at rate 0.
	never = time.Duration(math.MaxInt64)
)

// DefaultMaxInFlight is used for the zero value of Config.MaxInFlight.
const DefaultMaxInFlight = 10_000

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
	// Seed gives the first offset and the jitter of the schedule. Regions should have different ones.
	Seed uint64
	// Rate is the rate at the start; Generator.SetRate changes it.
	Rate Rate
	// Cost is what each request costs, in units; 0 stands for 1.
	Cost int64
	// MaxInFlight is the maximum number of requests under way. Requests that fall due beyond it are
	// shed and counted. 0: DefaultMaxInFlight.
	MaxInFlight int
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
}

// Generator offers load to one region. Its methods are safe for concurrent use.
type Generator struct {
	config  Config
	changed chan struct{} // wakes Run after a change of rate
	flying  sync.WaitGroup

	mu      sync.Mutex
	random  *rand.Rand
	at      time.Time // up to when due is known; zero before the run
	due     float64   // what has fallen due of the next request
	whole   float64   // what makes it due: 1, give or take the jitter
	stopped bool
	index   uint64
	stats   Stats // but for Due
}

// NewGenerator returns a generator for Run to start. It fails if it has nothing to do.
func NewGenerator(c Config) (*Generator, error) {
	if c.Do == nil {
		return nil, errors.New("load: the generator of region " + c.Region + " has nothing to do: set Do")
	}
	c.Cost = max(c.Cost, 1)
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	random := rand.New(rand.NewPCG(c.Seed, 0x71756f746164)) // a fixed stream per seed
	return &Generator{config: c, changed: make(chan struct{}, 1), random: random,
		due: random.Float64(), whole: 1}, nil
}

// SetRate changes the rate from now on. Requests that fell due before are still sent. A rate below 0
// counts as 0.
func (g *Generator) SetRate(r Rate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if running := !g.at.IsZero() && !g.stopped; running {
		g.advance()
		select {
		case g.changed <- struct{}{}:
		default: // a wake-up is already pending
		}
	}
	g.config.Rate = r
}

// perSecond returns how many requests fall due in a second. The caller holds the lock.
func (g *Generator) perSecond() float64 {
	return max(float64(g.config.Rate), 0) / float64(g.config.Cost)
}

// advance counts the requests that have fallen due until now. The caller holds the lock.
func (g *Generator) advance() {
	now := time.Now()
	g.due += g.perSecond() * now.Sub(g.at).Seconds()
	g.at = now
	for g.due >= g.whole {
		g.due--
		g.whole = 1 + jitter*(2*g.random.Float64()-1)
		g.stats.Behind++
	}
}

// Stats returns the counts as of the generator's last wake-up.
func (g *Generator) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Due = s.Sent + s.Shed + s.Behind
	return s
}

// Run offers load until ctx is done. Then it waits for the requests under way, and cancels those
// that outlast the grace. It leaves no goroutine behind. A stop is not an error; the only error is
// that the generator ran before.
func (g *Generator) Run(ctx context.Context) error {
	g.mu.Lock()
	ran := !g.at.IsZero()
	g.at = time.Now()
	g.mu.Unlock()
	if ran {
		return errors.New("load: this generator of region " + g.config.Region +
			" was run before: make a new one for each run")
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-g.changed:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			break
		}
		timer.Reset(g.wake(requests))
	}
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	defer time.AfterFunc(grace, cancel).Stop()
	g.flying.Wait()
	return nil
}

// wake sends what is due, and returns the time until the next wake-up. A generator that fell behind
// catches up at four times its pace.
func (g *Generator) wake(requests context.Context) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.advance()
	rate := g.perSecond()
	most := 4 * (int64(rate*quantum.Seconds()) + 1)
	for range min(g.stats.Behind, most) {
		g.send(requests)
	}
	switch {
	case g.stats.Behind > 0 || rate*quantum.Seconds() > 1:
		return quantum
	case rate == 0:
		return never
	}
	return time.Duration(math.Ceil((g.whole - g.due) / rate * float64(time.Second)))
}

// send starts one request, or sheds it. The caller holds the lock.
func (g *Generator) send(requests context.Context) {
	r := Request{Region: g.config.Region, Cost: g.config.Cost, Index: g.index}
	g.index++
	g.stats.Behind--
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
