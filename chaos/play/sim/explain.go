package sim

import "fmt"

// Failure is a shrunk plan that breaks an invariant, and what happened in its run.
type Failure struct {
	*Plan
	Drawn    int // number of acts of the plan before shrinking
	Broken   *Violation
	Timeline string // its end, a column for each region
}

// timelineLines is the maximum number of lines of a timeline.
const timelineLines = 80

// Explain shrinks a plan that breaks an invariant, and runs it once more to write its timeline. It
// returns an error if the run now breaks nothing.
func Explain(p *Plan) (*Failure, error) {
	least := Shrink(p)
	o, err := Trace(least, timelineLines)
	if err != nil {
		return nil, err
	}
	if o.Broken == nil {
		return nil, fmt.Errorf(
			"seed %d broke an invariant once and not again: the simulation is not deterministic, which is a mistake in it: report it", p.Seed)
	}
	return &Failure{Plan: least, Drawn: len(p.Acts), Broken: o.Broken, Timeline: o.Timeline}, nil
}
