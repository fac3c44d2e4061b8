package sim

import "slices"

// maxRuns is the maximum number of runs for shrinking.
const maxRuns = 400

// Shrink returns the shortest plan it finds that breaks the same invariant. It leaves acts out by
// delta debugging (Zeller and Hildebrandt): halves first, then ever smaller parts. If the plan
// breaks nothing, it returns the plan itself.
func Shrink(p *Plan) *Plan {
	whole, err := Run(p)
	if err != nil || whole.Broken == nil {
		return p
	}
	left := maxRuns
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
