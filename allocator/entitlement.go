package allocator

import (
	"math/bits"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// Entitlements splits a limit over regions in proportion to their weights. Parts are rounded down,
// and the units left over go one each to the largest remainders (Hamilton's method), so the parts
// add up to the limit. Equal remainders are served in the order of the regions, beginning with the
// region that rotation, a hash of the key, chooses: over many keys no region always gets nothing.
// Weights are not negative, and not all zero; a region of weight 0 gets nothing.
func Entitlements(limit quantity.Units, weights []quantity.Units,
	rotation uint64) []quantity.Units {
	return new(Scratch).entitlements(limit, weights, rotation)
}

func (k *Scratch) entitlements(limit quantity.Units, weights []quantity.Units,
	rotation uint64) []quantity.Units {
	var total quantity.Units
	for _, w := range weights {
		total += w
	}
	n := len(weights)
	k.given, k.remainder = sized(k.given, n), sized(k.remainder, n)
	split, remainder := k.given, k.remainder
	left := limit
	for i, w := range weights {
		split[i], remainder[i] = mulDiv(limit, int64(w), int64(total))
		left -= split[i]
	}
	if left == 0 {
		return split
	}
	for _, i := range k.byRemainder(weights, int(rotation%uint64(n)))[:left] {
		split[i]++
	}
	return split
}

// byRemainder returns the positions with a weight, the largest remainder first. Equal remainders
// come in the order of their positions, beginning at first and going round.
func (k *Scratch) byRemainder(weights []quantity.Units, first int) []int {
	order := k.order[:0]
	for n := range weights {
		i := first + n
		if i >= len(weights) {
			i -= len(weights)
		}
		if weights[i] > 0 {
			order = k.insertByRemainder(order, i)
		}
	}
	k.order = order
	return order
}

// insertByRemainder puts a position behind those with a remainder as large, and before those with a
// smaller one. There are no more positions than regions, so no sort is quicker.
func (k *Scratch) insertByRemainder(order []int, i int) []int {
	order = append(order, i)
	at := len(order) - 1
	for ; at > 0 && k.remainder[order[at-1]] < k.remainder[i]; at-- {
		order[at] = order[at-1]
	}
	order[at] = i
	return order
}

// sized returns a slice of n zeros. It uses the memory of s if that is large enough.
func sized[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Split is what each region is entitled to of one bucket, by its position in the document.
type Split struct {
	Units []quantity.Units // of the limit; the sum is the limit exactly
	Burst []quantity.Units // of the burst; the sum is the burst exactly
}

// SplitOf splits a limit, and the burst of a bucket (0 for windows), over regions in proportion to
// their weights. A region that gets nothing of the limit gets nothing of the burst: its tokens
// would never be refilled, and nobody could tell that from tokens that were lost.
//
// In home mode, for amounts too small to be split, everything belongs to one region. The rotation,
// a hash of the key, chooses it from those with a weight; the others borrow from it.
func SplitOf(limit, burst quantity.Units, weights []quantity.Units, rotation uint64,
	home bool) Split {
	if home {
		return Split{Units: atHome(limit, weights, rotation), Burst: atHome(burst, weights,
			rotation)}
	}
	s := Split{Units: Entitlements(limit, weights, rotation)}
	refilled := slices.Clone(weights)
	for i, units := range s.Units {
		if units == 0 {
			refilled[i] = 0
		}
	}
	s.Burst = Entitlements(burst, refilled, rotation)
	return s
}

// Stored returns what the regions' stores hold of a split when each region keeps a reserve out of
// its store, in parts per million: F - floor(v F) units and B - floor(v B) of the burst. A region
// that is entitled to something has at least one unit of it in its store, unless the reserve is
// everything.
func (s Split) Stored(reserve quantity.PPM) Split {
	less := func(all []quantity.Units) []quantity.Units {
		stored := make([]quantity.Units, len(all))
		for i, units := range all {
			stored[i] = units - Part(units, reserve)
		}
		return stored
	}
	return Split{Units: less(s.Units), Burst: less(s.Burst)}
}

// atHome gives all units to one of the regions with a weight.
func atHome(units quantity.Units, weights []quantity.Units, rotation uint64) []quantity.Units {
	var homes []int
	for i, w := range weights {
		if w > 0 {
			homes = append(homes, i)
		}
	}
	split := make([]quantity.Units, len(weights))
	split[homes[rotation%uint64(len(homes))]] = units
	return split
}

// RegionPart is one region's part of a bucket by the document, in units. It is the same for every
// cell.
type RegionPart struct {
	Entitlement   quantity.Units
	Burst         quantity.Units
	Lendable      quantity.Units // the most of its entitlement that it may lend of a cell
	LendableBurst quantity.Units // the most of its burst that it may lend of a cell
	Borrowable    quantity.Units // the most that it may borrow of a cell
}

// RegionPartOf returns the part of a region with the given entitlement and burst. lending and
// borrowing are parts per million of its entitlement; with a negative borrowing only the limit
// bounds what it may borrow.
func RegionPartOf(entitlement, burst, limit quantity.Units, lending,
	borrowing quantity.PPM) RegionPart {
	p := RegionPart{Entitlement: entitlement, Burst: burst, Borrowable: limit,
		Lendable: Part(entitlement, lending), LendableBurst: Part(burst, lending)}
	if borrowing >= 0 {
		p.Borrowable = min(Part(entitlement, borrowing), limit)
	}
	return p
}

// PPM is a fraction in parts per million.
const PPM = 1_000_000

// Part returns the given parts per million of units, rounded down.
func Part(units quantity.Units, ppm quantity.PPM) quantity.Units {
	q, _ := mulDiv(units, int64(ppm), PPM)
	return q
}

// mulDiv returns a*b/c and the remainder, for a, b >= 0 and c > 0, without overflow in between. A
// quotient beyond an int64 is cut to the largest int64.
func mulDiv[T ~int64](a T, b, c int64) (quotient T, remainder int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return maxInt64, 0
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if q > maxInt64 {
		return maxInt64, 0
	}
	return T(q), int64(r)
}

// root returns the square root of n, rounded down, by Newton's method, or 0 for n below 0.
func root[T ~int64](n T) T {
	if n <= 0 {
		return 0
	}
	r := T(1) << ((bits.Len64(uint64(n)) + 1) / 2)
	for next := (r + n/r) / 2; next < r; next = (r + n/r) / 2 {
		r = next
	}
	return r
}

const maxInt64 = 1<<63 - 1
