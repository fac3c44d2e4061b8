package allocator

import "github.com/quotad/quotad/quantity"

// Demander is one region's input to the water-fill of one cell, in units.
type Demander struct {
	Entitlement quantity.Units
	Demand      quantity.Units // what it expects to admit in the whole cell if it may
	Borrow      quantity.Units // the most it may borrow on top of its entitlement
	Lend        quantity.Units // the most it may lend of its entitlement
}

// Demander returns the region's input to the water-fill of a cell for a demand in units.
func (p RegionPart) Demander(demand quantity.Units) Demander {
	return Demander{Entitlement: p.Entitlement, Demand: demand, Borrow: p.Borrowable,
		Lend: p.Lendable}
}

// floor returns what a region gets before anyone borrows.
func (c Demander) floor() quantity.Units { return min(c.Entitlement, c.Demand) }

// Scratch is memory for divisions, used again by the next one, so that they allocate nothing. A
// result is valid until the next call. The zero value is ready to use; it is not safe for
// concurrent use.
type Scratch struct {
	target, unmet, weights, given []quantity.Units
	remainder                     []int64
	order                         []int
	portions                      []Portion
}

// WaterFill returns each region's target share of a cell, by weighted max-min fairness (Bertsekas
// and Gallager, Data Networks, 6.5.2). First every region gets what it wants of its entitlement.
// What a region leaves over, at most what it may lend, goes to the regions that want more. They get
// it in proportion to their entitlements (an entitlement of 0 weighs as 1 unit), each at most what
// it may borrow. Parts are rounded by largest remainder. The targets never add up to more than the
// entitlements.
func (k *Scratch) WaterFill(demanders []Demander) []quantity.Units {
	k.target, k.unmet = sized(k.target, len(demanders)), sized(k.unmet, len(demanders))
	target, unmet := k.target, k.unmet
	var spare quantity.Units
	for i, c := range demanders {
		target[i] = c.floor()
		spare += min(c.Entitlement-target[i], c.Lend)
		unmet[i] = max(min(c.Demand-c.Entitlement, c.Borrow), 0)
	}
	for spare > 0 {
		given := k.pour(spare, demanders, unmet)
		var sum quantity.Units
		for i, g := range given {
			target[i] += g
			unmet[i] -= g
			sum += g
		}
		if sum == 0 {
			break
		}
		spare -= sum
	}
	return target
}

// Target returns the first region's target share of a cell. If no other region wants more than its
// entitlement, nothing needs to be shared fairly, and the target is all that the first region wants
// and may borrow: reports of the others' demand arrive late when it falls, and the lenders know
// what they keep. Otherwise it is the region's part of the water-fill.
func (k *Scratch) Target(demanders []Demander) quantity.Units {
	for _, c := range demanders[1:] {
		if c.Demand > c.Entitlement {
			return k.WaterFill(demanders)[0]
		}
	}
	own := demanders[0]
	return min(own.Demand, own.Entitlement+own.Borrow)
}

// pour divides spare once over the regions with unmet demand. It gives no region more than its
// unmet demand.
func (k *Scratch) pour(spare quantity.Units, demanders []Demander,
	unmet []quantity.Units) []quantity.Units {
	k.weights = sized(k.weights, len(demanders))
	weights := k.weights
	var total quantity.Units
	for i, c := range demanders {
		if unmet[i] > 0 {
			weights[i] = max(c.Entitlement, 1)
			total += weights[i]
		}
	}
	if total == 0 {
		return weights // all 0
	}
	given := k.entitlements(spare, weights, 0)
	for i := range given {
		given[i] = min(given[i], unmet[i])
	}
	return given
}
