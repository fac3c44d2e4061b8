package dev

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// play makes load and kills stores. It implements operators.Rehearsal.
type play struct {
	world    *world.World
	document *policy.Document
	limit    *policy.Limit // that the load is about: the last one of the document

	mu    sync.Mutex
	loads map[string]int // requests a second, by region
}

func newPlay(w *world.World, d *policy.Document) *play {
	p := &play{world: w, document: d, limit: &d.Limits[len(d.Limits)-1], loads: map[string]int{}}
	for _, r := range d.Regions {
		p.loads[r.Name] = 0
	}
	return p
}

func (p *play) known(region string) error {
	if _, known := p.document.RegionIndex(region); !known {
		return &admit.FieldError{Field: "region", Problem: fmt.Sprintf("%.63q does not run here", region)}
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
	p.loads[region] = perSecond
	return nil
}

// Loads implements operators.Rehearsal.
func (p *play) Loads() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.loads)
}

// KillStore implements operators.Rehearsal.
func (p *play) KillStore(region string, d time.Duration) error {
	if err := p.known(region); err != nil {
		return err
	}
	if err := p.world.KillStore(region, d); err != nil {
		return &admit.FieldError{Field: "region", Problem: err.Error()}
	}
	return nil
}

const (
	// loadEvery is how often requests of the load are made.
	loadEvery = 20 * time.Millisecond
	// maxUnderWay bounds the requests of one region's load that are under way. Beyond it none are
	// made.
	maxUnderWay = 64
)

// run makes the load until ctx ends.
func (p *play) run(ctx context.Context) {
	var regions sync.WaitGroup
	for _, r := range p.document.Regions {
		regions.Go(func() { p.runRegion(ctx, r.Name) })
	}
	regions.Wait()
}

func (p *play) runRegion(ctx context.Context, region string) {
	var asking sync.WaitGroup
	defer asking.Wait()
	q := admit.Request{Domain: p.limit.Domain, Descriptors: map[string]string{}, Cost: 1, Caller: "load"}
	for _, c := range p.limit.Match {
		q.Descriptors[c.Name] = c.Value
	}
	for _, name := range p.limit.Key {
		q.Descriptors[name] = "load"
	}
	places := make(chan struct{}, maxUnderWay)
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	owed := 0.0 // requests to be made
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for owed += float64(p.Loads()[region]) * loadEvery.Seconds(); owed >= 1; owed-- {
			select {
			case places <- struct{}{}:
			default:
				continue // too many are under way
			}
			asking.Go(func() {
				defer func() { <-places }()
				// The console shows what became of it.
				_, _ = p.world.Node(region).Check(ctx, q)
			})
		}
	}
}
