package sim

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// The judge computes what the promise allows for a mishap by itself, from the words of
// docs/explanation/promise.md and the limits document. It asks package allocator for nothing, so
// that a mistake there shows. TestTheJudgeAllowsNoMoreThanIsPrinted compares the two.

// million is what lending limits, borrowing limits and reserves are parts of.
const million = 1_000_000

// mayHold is what a region may hold of a bucket by one document.
type mayHold struct {
	limit            quantity.Units
	own, lends, lent quantity.Units // F, the part of it that it may lend, and what others may lend it
	most             quantity.Units // S_max
	burst, mostBurst quantity.Units // B and B_max
	reserves         bool           // it keeps a part out of its store
	reserved         quantity.Units // what that is
}

// worst returns a term of a region by the document that allows most.
func (b *bucket) worst(region int, term func(h mayHold) quantity.Units) (most quantity.Units) {
	for _, p := range b.limit.versions {
		most = max(most, term(holdOf(p.Limit, region)))
	}
	return most
}

// holdOf returns what a region may hold of a limit. In home mode any region may have all of it.
func holdOf(p *policy.Limit, region int) mayHold {
	limit, burst := p.Shared()
	if p.Home() {
		return mayHold{limit: limit, own: limit, lends: limit, most: limit, burst: burst,
			mostBurst: burst}
	}
	h := mayHold{limit: limit, own: entitledTo(p, limit, region),
		burst: entitledTo(p, burst, region), reserves: p.Reserve() > 0, reserved: partOf(p, limit, region)}
	h.reserved -= h.own
	lending := quantity.Units(p.LendingLimit)
	h.lends = h.own * lending / million
	h.mostBurst = h.burst
	for other := range p.Weights {
		if other == region {
			continue
		}
		h.lent += entitledTo(p, limit, other) * lending / million
		if p.Algorithm == algorithms.TokenBucket {
			h.mostBurst += entitledTo(p, burst, other) * lending / million
		}
	}
	borrows := h.lent
	if limited := quantity.Units(p.BorrowingLimit); limited >= 0 {
		borrows = min(borrows, h.own*limited/million)
	}
	h.most = min(h.own+borrows, limit)
	return h
}

// entitledTo returns the most units of a whole that a region is entitled to, for any key: its part
// by weight, rounded up, less what it keeps out of its store.
func entitledTo(p *policy.Limit, whole quantity.Units, region int) quantity.Units {
	part := partOf(p, whole, region)
	return part - part*quantity.Units(p.Reserve())/million
}

// partOf returns a region's part of a whole by weight, rounded up.
func partOf(p *policy.Limit, whole quantity.Units, region int) quantity.Units {
	var sum quantity.Units
	for _, w := range p.Weights {
		sum += w
	}
	if sum == 0 || p.Weights[region] == 0 {
		return 0
	}
	return partUp(whole, int64(p.Weights[region]), int64(sum))
}

// window returns the length of the bucket's window, µs.
func (b *bucket) window() int64 { return b.limit.policy.Window.Microseconds() }

// termForgotten is the term for a bucket of which a region forgets all (key-deleted): windows F and
// what others may lend it, buckets B_max and what rows of two cells refill.
func (b *bucket) termForgotten(region int) quantity.Units {
	return b.worst(region, func(h mayHold) quantity.Units {
		if b.limit.kind().Bucket() {
			return h.mostBurst + partUp(h.lends+h.lent, 2*b.cell(), b.window())
		}
		return min(h.own+h.lent, h.limit)
	})
}

// termMemory is the term for a window whose use nobody remembers (reset), or of which an operator says so:
// S_max.
func (b *bucket) termMemory(region int) quantity.Units {
	return b.worst(region, func(h mayHold) quantity.Units { return h.most })
}

// termReset is the term for a bucket of which an operator has a region forget the use (reset):
// windows S_max, buckets B_max.
func (b *bucket) termReset(region int) quantity.Units {
	if b.limit.kind().Bucket() {
		return b.worst(region, func(h mayHold) quantity.Units { return h.mostBurst })
	}
	return b.termMemory(region)
}

// termCheckpoints is the term for a bucket that is restored from checkpoints (store-lost): a
// hundredth of F and what is admitted in a second, at most S_max.
func (b *bucket) termCheckpoints(region int, rate quantity.Units) quantity.Units {
	return b.worst(region, func(h mayHold) quantity.Units {
		return min((h.own+99)/100+rate, h.most)
	})
}

// termCopied is the term for a bucket that is restored from a copy of what a node saw that is lost, too
// (store-lost): a hundredth of F and what is admitted in two seconds, at most S_max.
func (b *bucket) termCopied(region int, rate quantity.Units) quantity.Units {
	return b.termCheckpoints(region, 2*rate)
}

// termChunk is the term for a node whose machine stands still, and no clock shows it: the most that one
// of so many nodes holds, a fourth of what may be free.
func (b *bucket) termChunk(region, nodes int) quantity.Units {
	return b.termMemory(region) / quantity.Units(4*nodes)
}

// termAgain is the term for a bucket of which a store's time comes once more for so many µs
// (clock-back): S_max in that time, and B_max.
func (b *bucket) termAgain(region int, span int64) quantity.Units {
	return b.worst(region, func(h mayHold) quantity.Units {
		return h.mostBurst + partUp(h.most, span, b.window())
	})
}

// termLocal is the term for one node that decides without its store in one window (local), where its
// setting says so many. Of a bucket it is for all nodes, around the end of a window.
func (b *bucket) termLocal(region, setting, nodes int) quantity.Units {
	return b.worst(region, func(h mayHold) quantity.Units {
		part := h.own - h.lends
		if h.reserves {
			part = h.reserved
		}
		part /= quantity.Units(setting)
		switch k := b.limit.kind(); {
		case k.Sliding():
			return part / 2
		case k.Bucket():
			return 2 * part * quantity.Units(nodes)
		}
		return part
	})
}

// termLateEnvoy is the term for an Envoy that takes an assignment late (late-envoy): the limit's
// rate for a time to live, and the largest burst; of a fixed window the limit.
func (b *bucket) termLateEnvoy() (most quantity.Units) {
	for _, p := range b.limit.versions {
		if p.Assign == nil {
			continue
		}
		limit, _ := p.Shared()
		if b.limit.kind() != algorithms.FixedWindow {
			limit = partUp(limit, p.Assign.TTL.Microseconds(), b.window()) + p.Assign.MaxBurst
		}
		most = max(most, limit)
	}
	return most
}

// termClocks is the term for clocks that are apart by so many µs (clocks-apart), with what was
// promised of cells before they opened, in units and in burst. Without lending each region keeps to
// its part by its own clock, and the judge goes by those clocks. What is lent within a cell is had
// only when the borrower's clock has come there. What the region furthest behind lends does no
// harm.
func (b *bucket) termClocks(apart int64, units, burst quantity.Units) (most quantity.Units) {
	for _, p := range b.limit.versions {
		if len(p.written.Weights) == 2 && apart >= 2*b.cell() {
			continue // they do not trade
		}
		most = max(most, b.termClocksBy(p, apart, units, burst))
	}
	return most
}

// termClocksBy is termClocks by one document.
func (b *bucket) termClocksBy(p entry, apart int64, units,
	burst quantity.Units) quantity.Units {
	limit, _ := p.Shared()
	own, lends, leastOwn, leastLends := quantity.Units(0), quantity.Units(0), limit, limit
	for r, place := range p.place {
		if place < 0 {
			continue
		}
		h := holdOf(p.Limit, r)
		own, lends = own+h.own, lends+h.lends
		leastOwn, leastLends = min(leastOwn, h.own), min(leastLends, h.lends)
	}
	own, lends = min(own-leastOwn, limit), min(lends-leastLends, limit)
	near, beyond := min(apart, 2*b.cell()), max(apart-algorithms.ClockMargin, 0)
	switch k := b.limit.kind(); {
	case k == algorithms.TokenBucket:
		// Rates, and tokens that the lender has not minted yet by the borrower's clock.
		return partUp(min(units, own), near, b.window()) +
			min(burst, partUp(own, near, b.window()))
	case k.Bucket():
		return partUp(min(units, own), near, b.window())
	case beyond == 0:
		return 0
	case k == algorithms.SlidingWindowLog:
		return min(units, lends)
	}
	return partUp(min(units, lends), min(beyond, b.window()), b.window())
}
