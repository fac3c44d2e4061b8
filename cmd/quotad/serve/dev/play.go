package dev

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/chaos/real/load"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
)

// play makes load and kills stores. It implements operators.Rehearsal.
type play struct {
	world *world.World
	loads map[string]*load.Generator // by region

	mu    sync.Mutex
	rates map[string]int // requests a second, by region
}

// maxUnderWay bounds the requests of one region's load that are under way. Beyond it none are made.
const maxUnderWay = 64

// newPlay returns a play without load. Its load is about the last limit of the document.
func newPlay(w *world.World, d *policy.Document) (*play, error) {
	l := d.Limits[len(d.Limits)-1]
	q := admit.Request{Domain: l.Domain, Descriptors: map[string]string{}, Cost: 1, Caller: "load"}
	for _, c := range l.Match {
		q.Descriptors[c.Name] = c.Value
	}
	for _, name := range l.Key {
		q.Descriptors[name] = "load"
	}
	p := &play{world: w, loads: map[string]*load.Generator{}, rates: map[string]int{}}
	for _, r := range d.Regions {
		g, err := load.NewGenerator(load.Config{Region: r.Name, MaxInFlight: maxUnderWay,
			Do: func(ctx context.Context, r load.Request) {
				// The console shows what became of it.
				_, _ = w.Node(r.Region).Check(ctx, q)
			}})
		if err != nil {
			return nil, err
		}
		p.loads[r.Name], p.rates[r.Name] = g, 0
	}
	return p, nil
}

func (p *play) known(region string) error {
	if p.loads[region] == nil {
		return invalid.Fieldf("region", "%.63q does not run here", region)
	}
	return nil
}

// Load implements operators.Rehearsal.
func (p *play) Load(region string, perSecond int) error {
	if err := p.known(region); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rates[region] = perSecond
	p.loads[region].SetRate(load.Rate(perSecond))
	return nil
}

// Loads implements operators.Rehearsal.
func (p *play) Loads() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.rates)
}

// KillStore implements operators.Rehearsal.
func (p *play) KillStore(region string, d time.Duration) error {
	if err := p.known(region); err != nil {
		return err
	}
	if err := p.world.KillStore(region, d); err != nil {
		return &invalid.Field{Name: "region", Problem: err.Error()}
	}
	return nil
}

// run makes the load until ctx ends.
func (p *play) run(ctx context.Context) {
	var regions sync.WaitGroup
	for _, g := range p.loads {
		regions.Go(func() { _ = g.Run(ctx) }) // fails only if it is run twice
	}
	regions.Wait()
}
