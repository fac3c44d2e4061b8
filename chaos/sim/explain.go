package sim

import "fmt"

// Failure is a plan that breaks an invariant, shrunk, and what happened.
type Failure struct {
	*Plan
	Drawn    int // acts of the whole plan
	Broken   *Violation
	Timeline string // its end, a column for each region
}

// timelineLines bounds the lines of a timeline.
const timelineLines = 80

// Explain shrinks a plan that breaks an invariant and writes down what happens.
func Explain(p *Plan) (*Failure, error) {
	least := Shrink(p)
	o, err := Trace(least, timelineLines)
	if err != nil {
		return nil, err
	}
	if o.Broken == nil {
		return nil, fmt.Errorf("seed %d broke an invariant once and not again: the simulation is not deterministic, which is a mistake in it: report it", p.Seed)
	}
	return &Failure{Plan: least, Drawn: len(p.Acts), Broken: o.Broken, Timeline: o.Timeline}, nil
}
