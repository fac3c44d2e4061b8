package held

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// PartAnswer is what the store answered to requests of one part of a bucket's rights (classes of a
// limit): to use no more than that part, all use counted.
type PartAnswer struct {
	Part quantity.PPM
	// Denied is the smallest cost of theirs that it had no room for, 0: none. Verdict belongs to
	// it.
	Denied  quantity.Units
	Verdict algorithms.Verdict
	// Fitted is the largest cost that it had room for, of a request of this part or a smaller one.
	// Free is what fits at the end.
	Fitted, Free quantity.Units
}

// lower is the denials of requests of smaller parts. Each part has its own: one of a small part
// says nothing of a larger one, and one of a larger part does not say when a smaller one fits.
// There are as many as a limit has classes, at most. A list is never changed, only replaced.
type lower []*denial

// of returns the denial of a part, or nil.
func (all *lower) of(part quantity.PPM) *denial {
	if all == nil {
		return nil
	}
	for _, d := range *all {
		if d.part == part {
			return d
		}
	}
	return nil
}

// learnLower remembers denials of smaller parts, and forgets those that no longer hold. The caller
// holds the lock.
func (m *Memory) learnLower(a Answer) {
	old := m.lower.Load()
	if old == nil && len(a.Lower) == 0 {
		return
	}
	var now lower
	for _, its := range a.Lower {
		if d := next(old.of(its.Part), a, its); d != nil {
			now = append(now, d)
		}
	}
	if old != nil {
		for _, d := range *old {
			if a.lower(d.part) < 0 && !d.ended(a, max(a.State.Free-a.State.Withheld(a.Kind, d.part), 0)) {
				now = append(now, d)
			}
		}
	}
	m.lower.Store(&now)
}

// lower returns the place of a part in Lower, or -1.
func (a *Answer) lower(part quantity.PPM) int {
	for i := range a.Lower {
		if a.Lower[i].Part == part {
			return i
		}
	}
	return -1
}

// DenyPart is Deny for a request that may use only a part of the bucket's rights.
func (m *Memory) DenyPart(part quantity.PPM, cost quantity.Units, generation uint64, now time.Duration) (told Denial,
	denied, turn bool) {
	if part >= algorithms.Whole {
		return m.Deny(cost, generation, now)
	}
	return m.lower.Load().of(part).deny(cost, generation, now)
}
