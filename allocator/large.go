package allocator

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/quotad/quotad/quantity"
)

// A cost is large if it is more than a quantum of the limit. A region whose share does not hold a
// large cost denies it, although all regions together may have room. So it asks for the cost whole,
// and keeps what it gets until the caller comes again.

// LargeLasts returns how long after it was denied a large cost is asked for, and kept for: a
// second, which is when its caller comes again at the latest if it is in a hurry, and the time in
// which the region could get the rights back. What came for a cost that does not come again is
// spare then. roundTrip is that to the farthest peer. Both are microseconds.
func LargeLasts(roundTrip int64) int64 { return Second + Grace(roundTrip) }

// IsLarge reports whether a cost is large.
func IsLarge(cost, limit quantity.Units) bool { return cost > Quantum(limit) }

// Reach returns the most that a region can ever hold at once: what it is entitled to, and what the
// others may lend it. That is units of a cell, or tokens with burst.
func Reach(own RegionPart, others []RegionPart, burst bool) quantity.Units {
	var lent quantity.Units
	for _, p := range others {
		if lent += p.Lendable; burst {
			lent += p.LendableBurst - p.Lendable
		}
	}
	if burst {
		return own.Burst + lent
	}
	return own.Entitlement + min(lent, own.Borrowable)
}

// ComesFirst reports whether region a gets a large cost of a cell before region b, if both want one
// of a bucket. Without an order each would lend the other what it had gathered, and what a region
// has lent of a cell it cannot lend again. The order is another one in each cell.
func ComesFirst(bucket string, cell quantity.Cell, a, b string) bool {
	x, y := placeOf(bucket, cell, a), placeOf(bucket, cell, b)
	return x < y || x == y && a < b
}

// placeOf returns a region's place in a cell: a hash.
func placeOf(bucket string, cell quantity.Cell, region string) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64([]byte(region), uint64(cell)))
	h.Write([]byte(bucket))
	// The last bytes of what is hashed hardly change the first bits of FNV: mix them.
	x := h.Sum64()
	x ^= x >> 32
	return x * 0x9e3779b97f4a7c15
}
