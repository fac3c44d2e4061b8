package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/real/load"
)

// Options say how to play a scenario.
type Options struct {
	// Seed is the seed of the load's jitter.
	Seed uint64
	// Bounds are the printed bounds of the document; see [Scenario.PrintedBounds].
	Bounds map[string]Bounds
	// Began and Done are called when a step begins and when it is done. They may be nil.
	Began func(Step)
	Done  func(Event)
}

const (
	// maxUnderWay is the maximum number of requests of one load that wait for an answer.
	maxUnderWay = 256
	// askTimeout bounds one request. overtime is how long steps may go on after the load has ended.
	askTimeout = 2 * time.Second
	overtime   = 45 * time.Second
)

// Impossible returns an error that says which steps a stage cannot do, and why; nil: it can do all.
func (s *Scenario) Impossible(stage Stage) error {
	var errs []error
	for _, step := range s.Steps {
		if step.Do == "load" {
			continue
		}
		if err := stage.Can(step); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", step.pos, step, err))
		}
	}
	for _, l := range s.Load {
		if err := stage.Can(Step{Do: "cut-envoys", Region: l.Region}); err != nil && len(l.Envoys) > 0 {
			errs = append(errs, fmt.Errorf("load of Envoys in %s: %w", l.Region, err))
			break
		}
	}
	return errors.Join(errs...)
}

// Play plays a scenario in real time and returns the record. It fails if the play cannot begin, or
// if ctx ends. Failures of the deployment are in the record.
func (s *Scenario) Play(ctx context.Context, stage Stage, o Options) (*Record, error) {
	if err := s.Impossible(stage); err != nil {
		return nil, err
	}
	p := &play{Scenario: s, stage: stage, options: o}
	p.recorder.record = Record{Seed: o.Seed, Unsent: map[string]int64{}, Length: s.Duration,
		Bounds: o.Bounds}
	if err := p.prepare(); err != nil {
		return nil, err
	}
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { stage.Watch(watching, p.recorder.health) })
	p.run(ctx)
	unwatch()
	watch.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scenario %s was ended early: %w", s.Name, err)
	}
	r := p.recorder.done()
	r.Shed, r.Behind = p.notSent(func(s load.Stats) int64 { return s.Shed }),
		p.notSent(func(s load.Stats) int64 { return s.Behind })
	r.Facts = stage.Facts()
	for i, e := range r.Events {
		if e.Step.hasEffect() {
			r.Events[i].Effect = stage.Effect(e.Step)
		}
	}
	return r, nil
}

// play is a scenario in progress.
type play struct {
	*Scenario
	stage    Stage
	options  Options
	recorder recorder
	flows    []*load.Generator // in the order of Scenario.Load
}

// prepare makes a generator at rate 0 for each load.
func (p *play) prepare() error {
	for i, l := range p.Load {
		q := p.question(l)
		flow, err := load.NewGenerator(load.Config{Region: l.Region,
			Seed: p.options.Seed + uint64(i), Cost: l.Cost,
			MaxInFlight: maxUnderWay, Do: func(ctx context.Context,
				r load.Request) {
				p.ask(ctx, r, q)
			}})
		if err != nil {
			return err
		}
		p.flows = append(p.flows, flow)
	}
	return nil
}

func (p *play) ask(ctx context.Context, r load.Request, q Question) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if a, sent := p.stage.Ask(ctx, r.Region, r.Index, q); sent {
		p.recorder.answer(a)
	} else {
		p.recorder.unsent(r.Region)
	}
}

// run offers load, and does each step at its time.
func (p *play) run(ctx context.Context) {
	began := time.Now()
	p.recorder.record.Began = began
	loading, unload := context.WithCancel(ctx)
	defer unload()
	acting, abandon := context.WithTimeout(ctx, p.Duration+overtime)
	defer abandon()
	var work sync.WaitGroup
	for i, l := range p.Load {
		work.Go(func() { _ = p.flows[i].Run(loading) }) // fails only if it is run twice
		work.Go(func() { p.change(loading, began, l.From, i, l.Rate) })
		if l.To < p.Duration {
			work.Go(func() { p.change(loading, began, l.To, i, 0) })
		}
	}
	for _, step := range p.Steps {
		work.Go(func() { p.step(acting, began, step) })
	}
	Sleep(ctx, time.Until(began.Add(p.Duration)))
	unload()
	work.Wait()
}

// notSent counts, by region, requests that fell due and were not sent.
func (p *play) notSent(count func(load.Stats) int64) map[string]int64 {
	all := map[string]int64{}
	for i, l := range p.Load {
		if n := count(p.flows[i].Stats()); n > 0 {
			all[l.Region] += n
		}
	}
	return all
}

// change sets the rate of a load at a time.
func (p *play) change(ctx context.Context, began time.Time, at time.Duration, flow int,
	rate int64) {
	if Sleep(ctx, time.Until(began.Add(at))) {
		p.flows[flow].SetRate(load.Rate(rate))
	}
}

// step does a step at its time, and records it.
func (p *play) step(ctx context.Context, began time.Time, s Step) {
	if !Sleep(ctx, time.Until(began.Add(s.At))) {
		return
	}
	if p.options.Began != nil {
		p.options.Began(s)
	}
	e := Event{Step: s, From: time.Since(began)}
	if s.Do == "load" {
		for i, l := range p.Load {
			if s.changes(l) {
				p.flows[i].SetRate(load.Rate(s.Rate))
			}
		}
	} else {
		e.Outcome, e.Err = p.stage.Do(ctx, s)
	}
	e.To = time.Since(began)
	p.recorder.event(e)
	if p.options.Done != nil {
		p.options.Done(e)
	}
}

// Sleep waits for d. It returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
