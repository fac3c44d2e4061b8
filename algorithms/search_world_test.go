//go:build !race

package algorithms

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/quotad/quotad/quantity"
)

var (
	regionNames  = [2]string{"a", "b"}
	entitlements = [2]quantity.Units{2, 1}
)

const searchLimit = 3 // L, units in a window

// space is what one search explores. Times are ticks.
type space struct {
	kind                Kind
	window, cell, guard int64
	cells               quantity.Cell // after which time ends
	// most that a row may reach: rows are cumulative, so lending and giving back in turn would
	// raise them for ever
	maxLent, maxBack quantity.Units
	// Clocks. Without a drift, the regions' clocks are ahead of real time by fixed amounts and tick
	// together. With a drift, each clock ticks by itself, and they are never further apart than the
	// drift.
	ahead  [2]quantity.StoreTime
	drift  int64
	mutant mutant
	always bool // the limit is charged always: what was not known before may be charged at any time
	long   bool // only make long goes through it
	// Token buckets: tokens that the regions' stores and their Envoys may hold, and the most units
	// of a cell that a node may ever hold and hand back.
	burst, envoyBurst    [2]quantity.Units
	maxHeld, maxHandBack quantity.Units
}

// end is the last tick of a clock.
func (s *space) end() quantity.StoreTime { return s.cells.OpensAt(s.cell) - 1 }

// announced is a row that left a region. It can be heard for ever after. Its numbers are at most
// maxLent and maxBack.
type announced struct {
	cell           quantity.Cell
	lent, returned quantity.Units
}

// hears is the act of hearing a row. heard is the row of such an act.
func (s *space) hears(a announced) act {
	return hear + act((quantity.Units(int64(a.cell)*int64(s.maxLent+1))+a.lent)*(s.maxBack+1)+
		a.returned)
}

func (s *space) heard(a act) announced {
	n, lents, backs := int64(a-hear), s.maxLent+1, s.maxBack+1
	return announced{quantity.Cell(n / int64(backs) / int64(lents)),
		quantity.Units(n / int64(backs) % int64(lents)), quantity.Units(n % int64(backs))}
}

// beyond is the first number that is no act. A set of acts has room for 64.
func (s *space) beyond() act { return s.hears(announced{cell: s.cells}) }

// world is one state of the search: the moment that each region is in, and the acts open to it.
// Those are its own acts, and hearing the rows that the other announced.
type world struct {
	at  [2]int32
	may [2]acts
	// token buckets: the level of one bucket with the whole limit, from which all is taken that was
	// admitted; a numerator over the window
	level int16
}

// acts is a set of acts, as bits.
type acts uint64

func (a act) alone() acts { return 1 << a }

// visit is a world with the way to it: the previous visit, the act and who did it.
type visit struct {
	world
	before int32
	by     int8 // region, or both
	act    act
}

const both = 2 // a tick of both clocks

// search is one search under way.
type search struct {
	*space
	regions [2]*region
	visits  []visit
	seen    map[world]struct{}
}

// finding is the result of a search.
type finding struct {
	states int // different states, up to the first broken one
	// most units that ever counted of a region's admissions, unless a state is broken; see weigh
	most   [2]quantity.StoreTime
	broken string // the invariant that broke; empty: none
	way    string // to the broken state
}

// explore searches a space breadth first until a state is broken or so many states were seen.
func explore(space *space, most int) finding {
	if space.beyond() > 64 {
		panic(fmt.Sprintf("search: %d acts; take fewer cells or smaller rows", space.beyond()))
	}
	s := &search{space: space, seen: map[world]struct{}{}}
	for i := range s.regions {
		s.regions[i] = newRegion(space, i)
	}
	own := s.own()
	s.add(visit{before: -1, world: world{may: [2]acts{own, own}, level: s.fullPool()}})
	var next []visit
	for from := 0; from < len(s.visits) && len(s.visits) < most; from++ {
		next = s.next(next[:0], int32(from))
		for _, v := range next {
			if !s.add(v) {
				continue
			}
			if bad := s.broken(v.world); bad != "" {
				return finding{states: len(s.visits), broken: bad, way: s.way(len(s.visits) - 1)}
			}
		}
	}
	f := finding{states: len(s.visits)}
	for i, r := range s.regions {
		for _, m := range r.moments {
			f.most[i] = max(f.most[i], m.weight)
		}
	}
	return f
}

// add notes a visit unless its world was seen before. Announced rows that are no news to the region
// that may hear them do not make a different world, but they stay announced and are heard again.
func (s *search) add(v visit) bool {
	key := v.world
	for i := range key.may {
		key.may[i] &^= s.moment(v.world, i).deaf
	}
	if _, ok := s.seen[key]; ok {
		return false
	}
	s.seen[key] = struct{}{}
	s.visits = append(s.visits, v)
	return true
}

func (s *search) moment(w world, i int) *moment { return s.regions[i].moments[w.at[i]] }

// next appends the worlds one act away.
func (s *search) next(all []visit, from int32) []visit {
	w := s.visits[from].world
	for i := range s.regions {
		for may := w.may[i]; may != 0; may &= may - 1 {
			a := act(bits.TrailingZeros64(uint64(may)))
			if a == tick && (s.drift == 0 ||
				s.moment(w, i).now.Sub(s.moment(w, 1-i).now) == s.drift) {
				continue
			}
			if to, ok := s.step(w, i, a); ok {
				all = append(all, visit{to, from, int8(i), a})
			}
		}
	}
	if s.drift > 0 {
		return all
	}
	if to, ok := s.step(w, 0, tick); ok {
		if to, ok = s.step(to, 1, tick); ok {
			to.level = s.refillPool(to.level)
			all = append(all, visit{to, from, both, tick})
		}
	}
	return all
}

// step has one region do an act, and reports whether that changed anything.
func (s *search) step(w world, i int, a act) (world, bool) {
	got := s.regions[i].after(w.at[i], a)
	changed := got.to != w.at[i]
	w.at[i] = got.to
	w.may[1-i] |= got.opens
	w.level = s.drainPool(w.level, got.spent)
	return w, changed || got.spent > 0
}

// way describes how a visit was reached.
func (s *search) way(to int) string {
	var acts []string
	for v := s.visits[to]; v.before >= 0; v = s.visits[v.before] {
		acts = append(acts, s.tell(v))
	}
	slices.Reverse(acts)
	return strings.Join(acts, ", ")
}

func (s *search) tell(v visit) string {
	switch {
	case v.by == both:
		return "tick"
	case v.act < hear:
		return regionNames[v.by] + " " + actNames[v.act]
	}
	row := s.heard(v.act)
	return fmt.Sprintf("%s hears (cell %d: lent %d, returned %d)", regionNames[v.by], row.cell,
		row.lent, row.returned)
}
