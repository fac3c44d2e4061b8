package oracle

import (
	"fmt"
	"math/bits"
)

// A limit may have classes, of which each may use a part of what its region holds, all use counted.
// From outside that is judged in the windows of one region: what it was seen to admit, and the
// share that it claims in the decision. What the judge does not see counts as nothing, so it
// accuses no answer wrongly. Of a bucket the capacity is not told, and its classes are not judged.

// millionths is a whole, in the unit of Answer.Part.
const millionths = 1_000_000

// used is what one region admitted of one bucket by its store, in the order of its store's time.
type used struct{ admitted []admission }

type admission struct{ at, units int64 }

// regionBucket is a bucket in one region.
type regionBucket struct{ bucket, region string }

// checkClass notes what an answer admitted, and checks that the class of an admitted request had
// room.
func (j *Judge) checkClass(a Answer) {
	if a.Outcome != Admitted || a.Elsewhere || j.rule.burst {
		return
	}
	if j.used == nil {
		j.used = map[regionBucket]*used{}
	}
	of := regionBucket{a.Bucket, a.Region}
	u := j.used[of]
	if u == nil {
		u = &used{}
		j.used[of] = u
	}
	u.add(admission{a.At, a.Cost})
	u.forget(a.At - 2*j.limit.Window.Microseconds() - j.slack)
	if a.Part <= 0 || a.Part >= millionths || a.Share < 0 {
		return
	}
	j.classes++
	may := part(a.Share, a.Part)
	if counts := u.counts(j.limit, a); counts > may {
		j.exceeded++
		j.accuse(a, fmt.Sprintf("answer %d of node %s of region %s is of a class that may use %d of the share of %d, and with it %d count there",
			a.Sequence, a.Node, a.Region, may, a.Share, counts))
	}
}

// add adds an admission. Most come in the order of their times.
func (u *used) add(a admission) {
	i := len(u.admitted)
	for i > 0 && u.admitted[i-1].at > a.at {
		i--
	}
	u.admitted = append(u.admitted, admission{})
	copy(u.admitted[i+1:], u.admitted[i:])
	u.admitted[i] = a
}

// forget drops what was admitted before a time.
func (u *used) forget(before int64) {
	n := 0
	for n < len(u.admitted) && u.admitted[n].at < before {
		n++
	}
	u.admitted = u.admitted[n:]
}

// counts returns the units that counted in the region when an answer was given, its own among them,
// rounded up, as what they are held against is whole: those of its window and, fading, of the one
// before; of a log those of the last window.
func (u *used) counts(l Limit, a Answer) int64 {
	window := l.Window.Microseconds()
	var now, before int64
	for _, one := range u.admitted {
		switch {
		case one.at > a.At:
		case l.Algorithm == "sliding_window_log":
			if one.at > a.At-window {
				now += one.units
			}
		case l.CellOf(one.at) == a.Cell:
			now += one.units
		case l.Algorithm == "sliding_window_counter" && l.CellOf(one.at) == a.Cell-1:
			before += one.units
		}
	}
	if before > 0 {
		elapsed := a.At - a.Cell*window
		hi, lo := bits.Mul64(uint64(before), uint64(max(window-elapsed, 0)))
		fading, rest := bits.Div64(hi, lo, uint64(window)) // at most before
		if rest > 0 {
			fading++
		}
		now += int64(fading)
	}
	return now
}

// part returns millionths of units, rounded down.
func part(units, millionth int64) int64 {
	hi, lo := bits.Mul64(uint64(units), uint64(millionth))
	q, _ := bits.Div64(hi, lo, millionths) // at most units
	return int64(q)
}
