package sim

import "slices"

// mostRuns bounds the runs that shrinking takes.
const mostRuns = 400

// Shrink returns the plan with fewest acts that it finds to break the same invariant, by leaving acts out (delta debugging, as
// Zeller and Hildebrandt describe it): halves first, then ever smaller parts. It returns the plan itself if nothing breaks.
func Shrink(p *Plan) *Plan {
	whole, err := Run(p)
	if err != nil || whole.Broken == nil {
		return p
	}
	left := mostRuns
	breaks := func(acts []Act) bool {
		if left--; left < 0 {
			return false
		}
		tried := *p
		tried.Acts = acts
		o, err := Run(&tried)
		return err == nil && o.Broken != nil && o.Broken.Invariant == whole.Broken.Invariant
	}
	acts := p.Acts
	for part := (len(acts) + 1) / 2; part > 0 && left > 0; {
		shorter := false
		for from := 0; from < len(acts); {
			to := min(from+part, len(acts))
			without := slices.Concat(acts[:from], acts[to:])
			if breaks(without) {
				acts, shorter = without, true
			} else {
				from = to
			}
		}
		if part == 1 && !shorter {
			break
		}
		part = max(part/2, 1)
		if part > len(acts) {
			part = len(acts)
		}
	}
	least := *p
	least.Acts = acts
	return &least
}
