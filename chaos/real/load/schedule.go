package load

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// jitterPercent is the part of the spacing by which a request is moved at most, to either side.
const jitterPercent = 3

// whole stands for a whole spacing: progress, which is kept over a change of rate, is in these
// parts.
const whole = 1_000_000_000

// never is the due time of a schedule at rate 0.
const never = time.Duration(math.MaxInt64)

// schedule says when requests fall due, as time since the start of the run. It reads no clock.
type schedule struct {
	random *rand.Rand
	cost   int64
	rate   Rate
	// origin is when request 0 of the present rate is due, without jitter. next is the number of
	// the request that is due next, at due.
	origin time.Duration
	next   uint64
	due    time.Duration
	// progress is how much of the spacing was left, in parts of whole, when the rate became 0.
	progress int64
}

// newSchedule returns a schedule at rate 0. Its first request is a random part of a spacing away,
// so that regions do not send at the same times.
func newSchedule(seed uint64, cost int64) *schedule {
	random := rand.New(rand.NewPCG(seed, 0x71756f746164)) // a fixed stream per seed
	return &schedule{random: random, cost: cost, due: never, progress: random.Int64N(whole)}
}

// setRate changes the rate at now. No request may be due at now or before. The elapsed part of a
// spacing is kept: if half a spacing was left, half of the new spacing is left.
func (s *schedule) setRate(now time.Duration, r Rate) {
	if s.rate > 0 {
		s.progress = partOf(s.position(s.next)-now, s.spacing())
	}
	s.rate, s.next, s.due = r, 0, never
	if r > 0 {
		s.origin = saturate(now, mulDiv(uint64(s.spacing()), uint64(s.progress), whole))
		s.draw()
	}
}

// advance passes all requests due at now or before and returns their number.
func (s *schedule) advance(now time.Duration) (due int64) {
	for s.due <= now && s.due != never {
		due++
		s.next++
		s.draw()
	}
	return due
}

// draw sets the due time of the next request.
func (s *schedule) draw() {
	most := int64(s.spacing() / 100 * jitterPercent)
	jitter := time.Duration(s.random.Int64N(2*most+1) - most)
	s.due = s.position(s.next)
	if s.due != never {
		s.due += jitter
	}
}

// spacing returns the time between two requests, rounded down; rate must be > 0.
func (s *schedule) spacing() time.Duration {
	return saturate(0, mulDiv(uint64(s.cost), nanosPerMilli, uint64(s.rate)))
}

// position returns when request n is due, without jitter; rate must be > 0. It is computed from the
// origin each time, so that rounding errors do not accumulate.
func (s *schedule) position(n uint64) time.Duration {
	high, units := bits.Mul64(n, uint64(s.cost))
	if high > 0 {
		return never
	}
	return saturate(s.origin, mulDiv(units, nanosPerMilli, uint64(s.rate)))
}

// nanosPerMilli is the factor from units divided by thousandths of a unit per second to
// nanoseconds.
const nanosPerMilli = 1_000_000_000_000

// partOf returns left / spacing in parts of whole, within 0 to whole.
func partOf(left, spacing time.Duration) int64 {
	left = min(max(left, 0), spacing)
	if spacing == 0 {
		return 0
	}
	return int64(mulDiv(uint64(left), whole, uint64(spacing)))
}

// mulDiv returns a * b / c rounded down, at most the largest number.
func mulDiv(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high >= c {
		return math.MaxUint64
	}
	q, _ := bits.Div64(high, low, c)
	return q
}

// saturate returns base + d, or never if that is too large.
func saturate(base time.Duration, d uint64) time.Duration {
	// A margin of an eighth leaves room for jitter.
	if limit := uint64(never) - uint64(never)/8; d >= limit || uint64(base) >= limit-d {
		return never
	}
	return base + time.Duration(d)
}
