package sim

import (
	"fmt"
	"time"
)

// Outcome is the result of a run.
type Outcome struct {
	Plan     *Plan
	Broken   *Violation // nil: everything held
	Counts   Counts
	Timeline string // only from Trace
	Digest   Digest // only from RunDigested and Trace
}

// Run runs a plan. It is deterministic, and safe for concurrent use on different plans.
func Run(p *Plan) (*Outcome, error) { return run(p, nil, nil) }

// RunDigested runs a plan as Run does, and also computes the digest.
func RunDigested(p *Plan) (*Outcome, error) { return run(p, nil, newDigest()) }

// Trace runs a plan, and also writes the timeline, of at most so many lines, and computes the
// digest.
func Trace(p *Plan, lines int) (*Outcome, error) {
	t := &trace{}
	o, err := run(p, t, newDigest())
	if o != nil {
		o.Timeline = t.timeline(p.Regions, lines)
	}
	return o, err
}

func run(p *Plan, t *trace, d *digest) (*Outcome, error) {
	w, err := newWorld(p, t, d)
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
	return &Outcome{Plan: p, Broken: w.broken, Counts: w.counts, Digest: d.sum()}, nil
}

// span converts microseconds to a duration.
func span(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
