package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/real/load"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// The regions of the demo.
var demoRegions = []Region{{"us-east", 40}, {"eu-west", 40}, {"ap-south", 20}}

const (
	demoLimit  = 1000
	demoWindow = time.Second
	cutRegion  = "us-east" // the region that is cut off
	// Shortest is the shortest story. In a shorter one, degraded would not show before the heal.
	Shortest = 20 * time.Second
)

// phase is one phase of the story.
type phase struct {
	name   string
	weight int // part of the length, of 60
	demand [3]int64
	cut    bool
}

var phases = []phase{
	{"steady", 8, [3]int64{380, 380, 180}, false},
	{"skew", 10, [3]int64{900, 60, 20}, false},
	{"partition", 12, [3]int64{900, 60, 20}, true},
	{"flood", 8, [3]int64{700, 700, 350}, true},
	{"heal", 22, [3]int64{900, 60, 20}, false},
}

// Story says how the demo is played.
type Story struct {
	Duration  time.Duration
	Seed      uint64
	Scale     float64 // multiplies limit and demand
	Algorithm string
	RoundTrip time.Duration
	Inflate   int64            // see Config.Inflate
	Exchange  exchange.Options // parts of the protocol switched off
	Log       *slog.Logger
	// Redis starts a region's Redis.
	Redis func(context.Context) (*servers.Server, error)
	// Begun is called once the world runs; nil: nothing.
	Begun func(*World) error
	// Progress is called about once a second; nil: nothing.
	Progress func(Progress)
}

// Progress describes the last whole cell of a story.
type Progress struct {
	Phase   string
	Elapsed time.Duration
	Limit   int64
	Regions []RegionProgress
}

// RegionProgress is a region's part in such a cell.
type RegionProgress struct {
	Name        string
	Entitlement int64
	Offered     int64
	Admitted    int64
	Share       int64
	Degraded    bool
}

// play is a story being played.
type play struct {
	Story
	world      *World
	limit      int64
	begun      time.Time
	judge      *oracle.Judge
	watch      *watch
	generators []*load.Generator
	still      standstill
	// Requests that were made, and those that were decided without a Redis or not at all.
	answers, alone atomic.Int64
}

// Play plays a story and judges it. The error says that it could not be played. Whether the promise
// held is in the report.
func Play(ctx context.Context, s Story) (Report, error) {
	p := &play{Story: s, limit: s.scaled(demoLimit)}
	w, err := Start(ctx, Config{Regions: demoRegions, Limit: p.limit, Window: demoWindow,
		Algorithm: s.Algorithm,
		RoundTrip: s.RoundTrip, Redis: s.Redis, Inflate: s.Inflate, Exchange: s.Exchange,
		Log: s.Log})
	if err != nil {
		return Report{}, err
	}
	p.world = w
	report, err := p.run(ctx)
	return report, errors.Join(err, w.Close())
}

func (s Story) scaled(units int64) int64 { return int64(float64(units)*s.Scale + 0.5) }

// seconds returns how long each phase lasts, in whole windows.
func (s Story) seconds() []time.Duration {
	lengths := make([]time.Duration, len(phases))
	var sum, end time.Duration
	for i, ph := range phases {
		sum += s.Duration * time.Duration(ph.weight) / 60
		lengths[i] = sum.Round(demoWindow) - end
		end += lengths[i]
	}
	return lengths
}

func (p *play) run(ctx context.Context) (Report, error) {
	p.judge = oracle.New(p.ceiling())
	p.watch = newWatch(p.limit, demoWindow)
	if p.Begun != nil {
		if err := p.Begun(p.world); err != nil {
			return Report{}, err
		}
	}
	running, stop := context.WithCancel(ctx)
	var loads sync.WaitGroup
	defer loads.Wait()
	defer stop()
	for i, r := range demoRegions {
		g, err := load.NewGenerator(load.Config{Region: r.Name,
			Seed: p.Seed*uint64(len(demoRegions)) + uint64(i), Do: p.request})
		if err != nil {
			return Report{}, err
		}
		p.generators = append(p.generators, g)
		// A generator that is stopped returns no error.
		loads.Go(func() { _ = g.Run(running) })
	}
	// Every phase begins a tenth into a cell. Quota already lent for a cell stays lent during a
	// cut, so the effect of a cut just before a cell would show one cell later.
	if err := until(ctx,
		time.Now().Truncate(demoWindow).Add(demoWindow+demoWindow/10)); err != nil {
		return Report{}, err
	}
	loads.Go(func() { p.still.watch(running) })
	p.begun = time.Now()
	at := p.begun
	for i, length := range p.seconds() {
		if err := p.phase(ctx, phases[i], at, at.Add(length)); err != nil {
			return Report{}, err
		}
		at = at.Add(length)
	}
	stop()
	loads.Wait()
	return p.report(), nil
}

// ceiling returns the limit for the judge.
func (p *play) ceiling() oracle.Limit {
	l := oracle.Limit{Limit: p.limit, Window: demoWindow, Algorithm: p.Algorithm,
		ClockSlack: 100 * time.Millisecond}
	if policy.Algorithm(p.Algorithm).Bucket() {
		l.Burst = p.limit // the document's default
	}
	return l
}

// phase sets load and network for a phase and waits until it is over.
func (p *play) phase(ctx context.Context, ph phase, from, to time.Time) error {
	if err := p.judge.Phase(ph.name, from); err != nil {
		return err
	}
	p.watch.phase(ph, from, p.target(ph))
	for i, g := range p.generators {
		g.SetRate(load.Rate(p.scaled(ph.demand[i])))
	}
	if ph.cut {
		p.world.Network.Isolate(cutRegion, to.Sub(from))
	} else {
		p.world.Network.HealAll()
	}
	for next := from.Add(time.Second); !next.After(to); next = next.Add(time.Second) {
		if err := until(ctx, next); err != nil {
			return err
		}
		if p.Progress != nil {
			p.Progress(p.watch.lastCell(ph.name, next.Sub(p.begun), next))
		}
	}
	return nil
}

// target returns the share that the cut region should reach in a phase, by the water-fill of
// chaos/judge/oracle.
func (p *play) target(ph phase) int64 {
	demand, entitlement := make([]int64, len(demoRegions)), make([]int64, len(demoRegions))
	var weights int64
	for _, r := range demoRegions {
		weights += r.Weight
	}
	for i, r := range demoRegions {
		demand[i], entitlement[i] = p.scaled(ph.demand[i]), p.limit*r.Weight/weights
	}
	return oracle.WaterFill(p.limit, demand, entitlement)[0]
}

const account = "42"

// request makes one request and passes the answer to the judge and to the watch.
func (p *play) request(ctx context.Context, r load.Request) {
	sent := time.Now()
	d, err := p.world.Node(r.Region).Check(ctx, admit.Request{Domain: "demo",
		Descriptors: map[string]string{"account": account}, Cost: quantity.Units(r.Cost)})
	a := oracle.Answer{Bucket: "demo/" + account, Region: r.Region, Node: "n1",
		Sequence: d.Sequence, Cost: r.Cost,
		Cell: int64(d.Cell), At: int64(d.At), Sent: sent, Seen: time.Now(),
		Entitlement: int64(d.Entitlement), Share: int64(d.Share), Degraded: d.Degraded}
	p.answers.Add(1)
	if err != nil || d.At == 0 && !d.FromMemory {
		p.alone.Add(1)
	}
	switch {
	case err != nil:
		a.Outcome = oracle.Unknown
	case d.Allowed:
		a.Outcome = oracle.Admitted
	default:
		a.Outcome = oracle.Denied
		if d.At == 0 || d.FromMemory { // no store was asked
			a.At = sent.UnixMicro()
			a.Cell = p.ceiling().CellOf(a.At)
		}
	}
	p.judge.Record(a)
	p.watch.record(a)
}

// standstill measures how long the process got no processor. Safe for concurrent use.
type standstill struct{ most atomic.Int64 }

// watch measures until ctx ends.
func (s *standstill) watch(ctx context.Context) {
	const every = 20 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		s.most.Store(max(s.most.Load(), int64(now.Sub(last)-every)))
		last = now
	}
}

// longest returns the longest time so far.
func (s *standstill) longest() time.Duration { return time.Duration(s.most.Load()) }

// until waits until t.
func until(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the story was broken off: %w", ctx.Err())
	}
}
