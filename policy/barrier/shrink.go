package barrier

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// shrinking returns the regions to which a newer document gives less of some key than an older one.
func shrinking(a *policy.Document, older *policy.Limit, b *policy.Document,
	newer *policy.Limit) []string {
	return losing(a, older, b, newer, less)
}

// settling returns for how long, in microseconds, Envoys of some region may hold more than a newer
// document allows after their region acknowledged it; 0 if it takes nothing from Envoys.
func settling(a *policy.Document, older *policy.Limit, b *policy.Document,
	newer *policy.Limit) int64 {
	fewer := func(a, b part) bool { return a.envoys < b.envoys }
	if older.Assign == nil || losing(a, older, b, newer, fewer) == nil {
		return 0
	}
	return policy.AssignSettles.Microseconds()
}

// losing returns the regions whose part of some key is less in a newer document than in an older
// one.
func losing(a *policy.Document, older *policy.Limit, b *policy.Document, newer *policy.Limit,
	less func(a, b part) bool) (regions []string) {
	most, least := spread(a, older), spread(b, newer)
	aligned := slices.EqualFunc(a.Regions, b.Regions,
		func(a, b policy.Region) bool { return a.Name == b.Name })
	for _, r := range a.Regions {
		if aligned && anyOf(least[r.Name], most[r.Name], less) ||
			!aligned && less(lowest(least[r.Name]), highest(most[r.Name])) {
			regions = append(regions, r.Name)
		}
	}
	return regions
}

// part is what a region gets of one key: in its store, as its reserve, what of it it may lend, and
// the tokens that its Envoys may hold. Each is used by itself, so none may grow while what it grows
// by may still be used as another.
type part struct{ units, burst, reserve, reserveBurst, lendable, envoys quantity.Units }

// less says whether something of one part is less than in another.
func less(a, b part) bool {
	return a.units < b.units || a.burst < b.burst || a.reserve < b.reserve ||
		a.reserveBurst < b.reserveBurst || a.lendable < b.lendable || a.envoys < b.envoys
}

// anyOf says whether some rotation's part is less than in another document.
func anyOf(newer, older []part, less func(a, b part) bool) bool {
	for i := range older {
		if less(newer[i], older[i]) {
			return true
		}
	}
	return false
}

// lowest and highest return the extremes over all keys. A region that gets nothing has no parts.
func lowest(all []part) (p part) {
	for i, one := range all {
		if i == 0 {
			p = one
		}
		p = part{min(p.units, one.units), min(p.burst, one.burst), min(p.reserve, one.reserve),
			min(p.reserveBurst, one.reserveBurst), min(p.lendable, one.lendable),
			min(p.envoys, one.envoys)}
	}
	return p
}

func highest(all []part) (p part) {
	for _, one := range all {
		p = part{max(p.units, one.units), max(p.burst, one.burst), max(p.reserve, one.reserve),
			max(p.reserveBurst, one.reserveBurst), max(p.lendable, one.lendable),
			max(p.envoys, one.envoys)}
	}
	return p
}

// spread returns what each region gets of a limit, by rotation.
func spread(d *policy.Document, l *policy.Limit) map[string][]part {
	parts := make(map[string][]part, len(d.Regions))
	for rotation := range d.Regions {
		limit, burst := l.Shared()
		whole := allocator.SplitOf(limit, burst, l.Weights, uint64(rotation), l.Home())
		stored, envoys := whole.Stored(quantity.PPM(l.Reserve())), EnvoyParts(l, uint64(rotation))
		for i, r := range d.Regions {
			units, burst := stored.Units[i], stored.Burst[i]
			p := part{units, burst, whole.Units[i] - units, whole.Burst[i] - burst,
				allocator.Part(units, Lending(l)), envoys[i]}
			if l.EnvoyBurst() == 0 { // their tokens are units of the store
				p.envoys = 0
			}
			parts[r.Name] = append(parts[r.Name], p)
		}
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
