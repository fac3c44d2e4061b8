package sim

import (
	"fmt"
	"time"
)

// Outcome is how a run ended.
type Outcome struct {
	Plan     *Plan
	Broken   *Violation // nil: everything held
	Counts   Counts
	Timeline string // of a run that was traced
}

// Run runs a plan. It is deterministic, and safe for concurrent use on different plans.
func Run(p *Plan) (*Outcome, error) { return run(p, nil) }

// Trace runs a plan and writes down what happens.
func Trace(p *Plan, lines int) (*Outcome, error) {
	t := &trace{}
	o, err := run(p, t)
	if o != nil {
		o.Timeline = t.timeline(p.Regions, lines)
	}
	return o, err
}

func run(p *Plan, t *trace) (*Outcome, error) {
	w, err := newWorld(p, t)
	if err != nil {
		return nil, fmt.Errorf("seed %d: %w", p.Seed, err)
	}
	w.counts.Deeds = map[Deed]int64{}
	defer w.close()
	w.run(p.End)
	if w.broken == nil {
		w.finish()
	}
	if w.broken != nil {
		w.tell(nil, "VIOLATION %v", w.broken)
	}
	return &Outcome{Plan: p, Broken: w.broken, Counts: w.counts}, nil
}

// span is microseconds as a duration.
func span(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
