package allocator

import (
	"slices"

	"github.com/quotad/quotad/quantity"
)

// unassigned is the part of its entitlement that a region's store keeps: a sixty-fourth.
const unassigned = 64

// Unassigned returns the rights of a cell that no node of a region assigns to Envoys, of those that
// the region is entitled to: bursts are paid from them, and callers that are no Envoys get some.
func Unassigned(entitlement quantity.Units) quantity.Units { return entitlement / unassigned }

// NodePart returns a node's part of its region's target share of a bucket whose rights are a rate,
// in units a window. own is the demand on this node, others that on the region's other nodes. Parts
// are max-min fair: a node that gets less than another gets all that it wants. window is in
// microseconds.
func (k *Scratch) NodePart(target quantity.Units, own quantity.MilliRate,
	others []quantity.MilliRate, window int64) quantity.Units {
	k.given = sized(k.given, len(others))
	for i, rate := range others {
		k.given[i] = Over(rate, window)
	}
	slices.Sort(k.given)
	want, left := Over(own, window), max(target, 0)
	for i, other := range k.given {
		unserved := quantity.Units(len(others) + 1 - i)
		if other >= want {
			return min(want, left/unserved)
		}
		left -= min(other, left/unserved)
	}
	return min(want, left)
}
