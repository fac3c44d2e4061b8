package barrier

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// Entry is one part of what binds a limit: its entry in one document, or a piece of folded
// documents. Limit is nil for a piece, Piece for an entry.
type Entry struct {
	Document *policy.Document
	Limit    *policy.Limit
	Piece    *policy.Piece
}

// Parts returns the least that the entry gives each region, for a key with this hash.
func (e Entry) Parts(hash uint64) map[string]policy.Part {
	parts := map[string]policy.Part{}
	if e.Piece != nil {
		least, _ := e.Piece.Rotation(hash)
		for i, region := range e.Piece.Regions {
			parts[region] = least[i]
		}
		return parts
	}
	for i, p := range partsOf(e.Limit, len(e.Document.Regions), hash) {
		parts[e.Document.Regions[i].Name] = p
	}
	return parts
}

// Lent returns the most that a region may have lent, for a key with this hash.
func (e Entry) Lent(region string, hash uint64) quantity.Units {
	if e.Piece == nil {
		return e.Parts(hash)[region].Lendable
	}
	_, most := e.Piece.Rotation(hash)
	if i, has := slices.BinarySearch(e.Piece.Regions, region); has {
		return most[i].Lendable
	}
	return 0
}

// Terms are the numbers of an entry that hold for all regions.
type Terms struct {
	Limit, Largest     quantity.Units // that the stores share; the largest of limit and burst
	Home               bool
	Lending, Borrowing quantity.PPM
}

// Terms returns the entry's.
func (e Entry) Terms() Terms {
	if p := e.Piece; p != nil {
		return Terms{p.Limit, p.Largest, p.Home, quantity.PPM(p.Lending), quantity.PPM(p.Borrowing)}
	}
	limit, _ := e.Limit.Shared()
	return Terms{limit, e.Limit.Largest(), e.Limit.Home(), quantity.PPM(e.Limit.LendingLimit),
		quantity.PPM(e.Limit.BorrowingLimit)}
}

// And returns the terms of two entries that bind together. A limit in home mode has no bound of its
// own on what is lent and borrowed.
func (t Terms) And(other Terms) Terms {
	both := Terms{min(t.Limit, other.Limit), max(t.Largest, other.Largest), t.Home && other.Home, t.Lending, t.Borrowing}
	switch {
	case t.Home:
		both.Lending, both.Borrowing = other.Lending, other.Borrowing
	case !other.Home:
		both.Lending = min(t.Lending, other.Lending)
		if t.Borrowing < 0 || other.Borrowing >= 0 && other.Borrowing < t.Borrowing { // a negative one is no bound
			both.Borrowing = other.Borrowing
		}
	}
	return both
}

// partsOf returns what an entry gives each of a number of regions, for keys of a hash.
func partsOf(l *policy.Limit, regions int, hash uint64) []policy.Part {
	return splitParts(l, hash%uint64(regions), l.Home())
}

func splitParts(l *policy.Limit, rotation uint64, home bool) []policy.Part {
	limit, burst := l.Shared()
	whole := allocator.SplitOf(limit, burst, l.Weights, rotation, home)
	stored, envoys := whole.Stored(quantity.PPM(l.Reserve())), EnvoyParts(l, rotation)
	lending, _ := l.Traded()
	parts := make([]policy.Part, len(l.Weights))
	for i := range parts {
		units, tokens := stored.Units[i], stored.Burst[i]
		parts[i] = policy.Part{Units: units, Burst: tokens, Reserve: whole.Units[i] - units,
			ReserveBurst: whole.Burst[i] - tokens, Lendable: allocator.Part(units, lending), Envoys: envoys[i]}
	}
	return parts
}

// EnvoyParts returns each region's part of the tokens that Envoys may hold of a limit, in the order
// of its weights: 0 for all without assign.
func EnvoyParts(l *policy.Limit, rotation uint64) []quantity.Units {
	if l.Assign == nil {
		return make([]quantity.Units, len(l.Weights))
	}
	return allocator.SplitOf(l.Assign.MaxBurst, 0, l.Weights, rotation, false).Units
}

// spread is what each region of a document, or of a piece, gets of a limit, by rotation.
type spread struct {
	regions []string
	parts   [][]policy.Part // for each rotation, or for all as one
}

// spreadOf returns the spread of an entry, for comparison.
func spreadOf(d *policy.Document, l *policy.Limit) spread {
	s := spread{d.RegionNames(), make([][]policy.Part, len(d.Regions))}
	for rotation := range d.Regions {
		s.parts[rotation] = compared(l, partsOf(l, len(d.Regions), uint64(rotation)))
	}
	return s
}

// compared returns the parts of a limit in the form in which they are compared: what Envoys hold of
// a window are units of the store.
func compared(l *policy.Limit, parts []policy.Part) []policy.Part {
	for i := range parts {
		if l.EnvoyBurst() == 0 {
			parts[i].Envoys = 0
		}
	}
	return parts
}

// losing returns the regions that get less of some key by the newer spread than by the older one.
func (older spread) losing(newer spread, less func(a, b policy.Part) bool) (regions []string) {
	if !slices.Equal(older.regions, newer.regions) || len(older.parts) != len(newer.parts) {
		older, newer = older.whole(highest), newer.whole(lowest)
	}
	for i, region := range older.regions {
		j := slices.Index(newer.regions, region)
		for rotation, parts := range older.parts {
			var least policy.Part // a region that is not there has nothing
			if j >= 0 {
				least = newer.parts[rotation][j]
			}
			if less(least, parts[i]) {
				regions = append(regions, region)
				break
			}
		}
	}
	return regions
}

// whole returns a spread with one part of each region for all rotations.
func (s spread) whole(of func(a, b policy.Part) policy.Part) spread {
	one := slices.Clone(s.parts[0])
	for _, parts := range s.parts[1:] {
		for i := range one {
			one[i] = of(one[i], parts[i])
		}
	}
	return spread{s.regions, [][]policy.Part{one}}
}

// less reports whether any number of one part is less than in another. No number may grow while the
// units that it grows by may still be used as another number.
func less(a, b policy.Part) bool {
	return a.Units < b.Units || a.Burst < b.Burst || a.Reserve < b.Reserve ||
		a.ReserveBurst < b.ReserveBurst || a.Lendable < b.Lendable || a.Envoys < b.Envoys
}

func fewerTokens(a, b policy.Part) bool { return a.Envoys < b.Envoys }

func lowest(a, b policy.Part) policy.Part {
	return policy.Part{Units: min(a.Units, b.Units), Burst: min(a.Burst, b.Burst), Reserve: min(a.Reserve, b.Reserve),
		ReserveBurst: min(a.ReserveBurst, b.ReserveBurst), Lendable: min(a.Lendable, b.Lendable), Envoys: min(a.Envoys, b.Envoys)}
}

func highest(a, b policy.Part) policy.Part {
	return policy.Part{Units: max(a.Units, b.Units), Burst: max(a.Burst, b.Burst), Reserve: max(a.Reserve, b.Reserve),
		ReserveBurst: max(a.ReserveBurst, b.ReserveBurst), Lendable: max(a.Lendable, b.Lendable), Envoys: max(a.Envoys, b.Envoys)}
}

// Least returns the least that several entries give each region, for a key with this hash. A region
// that is missing in some of them gets nothing.
func Least(all []Entry, hash uint64) map[string]policy.Part {
	least := all[0].Parts(hash)
	for _, e := range all[1:] {
		parts := e.Parts(hash)
		for region, p := range least {
			least[region] = lowest(p, parts[region])
		}
		for region := range parts {
			if _, known := least[region]; !known {
				least[region] = policy.Part{}
			}
		}
	}
	return least
}
