package sim

import "github.com/quotad/quotad/quantity"

// Tightness says how near runs came to what the judge allows. A judge that allows much more than
// what happens sees no mistake, and neither does one of runs that leave most of a limit unused. It
// counts buckets that were asked for, and probes.
type Tightness struct {
	// Excused counts buckets with a cell that was allowed more than its ceiling. Half counts those
	// of them in which such a cell came to half of what it was allowed above the ceiling, or to
	// more.
	Excused, Half int64
	// Exact counts the other buckets. Tenth counts those of them in which a cell came within a
	// tenth of its ceiling.
	Exact, Tenth int64
	// Probes counts the probes after the last fault. Demanding counts those which had to be given
	// most of what they asked for.
	Probes, Demanding int64
}

// Add adds the counts of another run.
func (t *Tightness) Add(o Tightness) {
	t.Excused, t.Half = t.Excused+o.Excused, t.Half+o.Half
	t.Exact, t.Tenth = t.Exact+o.Exact, t.Tenth+o.Tenth
	t.Probes, t.Demanding = t.Probes+o.Probes, t.Demanding+o.Demanding
}

// measure counts how near a bucket came to what it was allowed.
func (t *Tightness) measure(b *bucket) {
	levels := b.judge.Levels(b.limit.w.plan.Keys[b.key])
	if len(levels) == 0 || b.refunded || b.limit.policy.Shadow {
		return
	}
	excused, half, tenth := false, false, false
	for cell, level := range levels {
		allowed, _ := b.allowedIn(quantity.Cell(cell))
		bound := int64(b.ceiling(quantity.Cell(cell)))
		excused = excused || allowed > 0
		half = half || allowed > 0 && 2*(level-bound) >= int64(allowed)
		tenth = tenth || 10*level >= 9*bound
	}
	switch {
	case excused:
		t.Excused++
		t.Half += oneIf(half)
	default:
		t.Exact++
		t.Tenth += oneIf(tenth)
	}
}

// oneIf returns 1 for true.
func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
