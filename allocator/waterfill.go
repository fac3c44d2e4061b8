package allocator

// Demander is what one region brings to the water-fill of one cell.
type Demander struct {
	Entitlement int64
	Demand      int64 // units it expects to admit in the whole cell if it may
	Borrow      int64 // most it may borrow on top of its entitlement
	Lend        int64 // most it may lend of its entitlement
}

// Demander is what the region brings to the water-fill with a demand in a cell.
func (p RegionPart) Demander(demand int64) Demander {
	return Demander{Entitlement: p.Entitlement, Demand: demand, Borrow: p.Borrowable, Lend: p.Lendable}
}

// floor is what a region gets before anyone borrows.
func (c Demander) floor() int64 { return min(c.Entitlement, c.Demand) }

// Scratch is memory for divisions, used again by the next one, so that they allocate nothing. A
// result is valid until the next call. The zero value is ready to use; it is not safe for
// concurrent use.
type Scratch struct {
	target, unmet, weights, given, remainder []int64
	order                                    []int
	portions                                 []Portion
}

// WaterFill returns each region's target share of a cell, by weighted max-min fairness (Bertsekas
// and Gallager, Data Networks, 6.5.2). First every region gets what it wants of its entitlement.
// What they then leave over, each at most what it may lend, goes to those that want more, in
// proportion to their entitlements (a region with none weighs 1 unit) and each at most what it may
// borrow. Parts are rounded by largest remainder. The targets never add up to more than the
// entitlements.
func (k *Scratch) WaterFill(demanders []Demander) []int64 {
	k.target, k.unmet = sized(k.target, len(demanders)), sized(k.unmet, len(demanders))
	target, unmet := k.target, k.unmet
	var spare int64
	for i, c := range demanders {
		target[i] = c.floor()
		spare += min(c.Entitlement-target[i], c.Lend)
		unmet[i] = max(min(c.Demand-c.Entitlement, c.Borrow), 0)
	}
	for spare > 0 {
		given := k.pour(spare, demanders, unmet)
		var sum int64
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

// Target returns the first region's target share of a cell. Where none of the others wants more
// than its entitlement there is nothing to be fair about, and the target is all that the first
// wants and may borrow: what the others said of their demand is late where it fell, and the
// lenders know what they keep. Else it is the region's part of the water-fill.
func (k *Scratch) Target(demanders []Demander) int64 {
	for _, c := range demanders[1:] {
		if c.Demand > c.Entitlement {
			return k.WaterFill(demanders)[0]
		}
	}
	own := demanders[0]
	return min(own.Demand, own.Entitlement+own.Borrow)
}

// pour divides spare once over the regions with unmet demand, nobody more than its own.
func (k *Scratch) pour(spare int64, demanders []Demander, unmet []int64) []int64 {
	k.weights = sized(k.weights, len(demanders))
	weights := k.weights
	var total int64
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
