package allocator

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Kept returns how many units of a cell a region keeps when a peer asks, beyond the units that
// count already. It keeps what it still expects to use of its entitlement; at least its demand
// during grace, the time within which it could ask for the units back; and, for other peers whose
// hints say that they want some, up to a twentieth of its entitlement.
func Kept(o Outlook, counted, entitlement quantity.Units, grace int64,
	othersWant quantity.Units) quantity.Units {
	kept := max(min(entitlement, o.Total())-counted, 0)
	if !o.Steady {
		kept = max(kept, o.Until(grace)-counted)
	}
	return kept + min(entitlement/20, max(othersWant, 0))
}

// KeptBurst returns how many tokens a region keeps when a peer asks for burst: the tokens that it
// expects to spend within the horizon beyond its refill, and at least its demand during grace.
func KeptBurst(o Outlook, share quantity.Units, grace int64) quantity.Units {
	o.Stock = 0
	return max(Lacking(o, Horizon, share), Over(o.Rate, grace), 0)
}

// Margin returns how many units of a sliding kind a region keeps beyond what it expects, 0 for the
// other kinds. A unit that is lent is missing here until a window after its cell. If every region
// lent all that it does not need on average, each would run short in turn.
//
// The margin is one standard deviation of the units that come in a window. Requests come as in a
// Poisson process, so that is the square root of their units times the spread of their costs. It is
// at most this region's equal part of slack, which is what all regions together are known to leave
// of the limit.
func (f Frame) Margin(o Outlook, spread int64, slack quantity.Units, regions int64) quantity.Units {
	if !f.Sliding {
		return 0
	}
	part := slack / quantity.Units(regions)
	return max(min(deviation(Over(o.Rate, f.Window), spread, part), part), 0)
}

// TailLeft reports whether the open cell is so far gone that a region keeps nothing of it when a
// peer asks: the cell's tail matters, and this region expects less than half a unit more.
func (f Frame) TailLeft(o Outlook) bool {
	return f.Long() && Over(2*min(o.Rate, algorithms.MaxUnits), o.Ahead) <= 1
}

// KeepsForOthers reports whether a region keeps some of a cell for peers other than the asker. It
// does not when the rest of a long cell is shorter than the horizon, because they have no time left
// to ask.
func (f Frame) KeepsForOthers(o Outlook) bool {
	return o.Steady || o.Ahead > Horizon || !f.Long()
}

// Unmet returns by how many units a region's needs exceed what it holds, at least 0.
func Unmet(needs, holds quantity.Units) quantity.Units { return max(needs-holds, 0) }

// Spare returns how many units of a cell a region lends if it is asked: what it has left, but no
// more than it may still lend. lendable is what it may lend of the cell in all, lent what it has
// lent. All are units, or all are tokens.
func Spare(left, lendable, lent quantity.Units) quantity.Units {
	return max(min(left, lendable-lent), 0)
}

// Unremarkable reports whether a region's nodes can be silent about a bucket that nobody asks
// about: each node wants no more than an equal part of the entitlement, and at least half of the
// burst is there. With several nodes each speaks up from its own part of the entitlement on:
// otherwise none would learn what they want together.
func Unremarkable(total quantity.Units, nodes int64, own RegionPart, free quantity.Units) bool {
	return quantity.Units(nodes)*total <= own.Entitlement && 2*free >= own.Burst
}

// WorthSaying reports whether what a region can spare has changed so much that others should hear
// of it at once: to less than half or more than twice, and by more than a fifth of all.
func WorthSaying(old, now, all quantity.Units) bool {
	return max(old, now) > 2*min(old, now) && 5*max(old-now, now-old) > all
}
