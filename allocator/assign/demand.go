package assign

import (
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

const (
	// A demand has grown by a step if it is more than 1/stepUp larger than in the report before, by
	// half, and fallen by a step if it is more than 1/stepDown smaller, a quarter.
	stepUp, stepDown = 2, 4
	// plain is the part of a demand that counts, in estimates of what it is by now: an eighth.
	plain = 8
)

// usual returns how many denied units always count as demand: what the least of the region's
// entitlements is in the time of a report.
func (s *share) usual(elapsed int64) quantity.Units {
	rate := int64(maxRate)
	for _, p := range s.pools {
		rate = min(rate, p.rateOf(p.Entitlement))
	}
	return allocator.Over(quantity.MilliRate(1000*rate), elapsed)
}

// step returns how much larger a demand probably is by now than the last report shows, of which the
// demand and the part that was denied were known before. A step comes at some moment between two
// reports: midway, on average. If the Envoy denied requests before and denies fewer now, that says
// for how long the demand was as before.
func (s *share) step(demand, denied int64) int64 {
	growth := s.demand - demand
	if growth > demand/stepUp && s.denied > 0 {
		return growth
	}
	if growth >= -demand/stepDown {
		return 0
	}
	const all = 1000
	before := int64(all / 2)
	if denied > demand/plain && s.denied < denied-denied/plain {
		before = all * s.denied / denied
	}
	now := (all*s.demand - before*demand) / (all - before)
	if now < demand/plain {
		now = 0 // it has ended
	}
	return min(now-s.demand, 0)
}
