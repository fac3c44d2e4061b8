//go:build !race

package algorithms

import (
	"maps"
	"strings"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// A search of token buckets: each region has a node that holds rights for one Envoy. All begin
// full. One bucket with the whole limit judges what stores and Envoys admit.

// searchEnvoy is the Envoy of a region, and what its node knows to hold by cell.
type searchEnvoy struct {
	burst quantity.Units
	level quantity.Units // numerator over the window
	cells map[quantity.Cell]envoyHold
}

func (s *space) newEnvoy(self int) searchEnvoy {
	return searchEnvoy{burst: s.envoyBurst[self],
		level: s.envoyBurst[self] * quantity.Units(s.window), cells: map[quantity.Cell]envoyHold{}}
}

func (e searchEnvoy) clone() searchEnvoy {
	e.cells = maps.Clone(e.cells)
	return e
}

// refill adds what a tick brings at a rate.
func (e *searchEnvoy) refill(rate quantity.Units, window int64) {
	e.level = min(e.level+rate, e.burst*quantity.Units(window))
}

func (e *searchEnvoy) admit(window int64) bool {
	if e.level < quantity.Units(window) {
		return false
	}
	e.level -= quantity.Units(window)
	return true
}

// searchNode is the name of each region's node.
const searchNode = "n"

// hold has a node hold or hand back units of a cell. It hears the answer, or not.
func (r *region) hold(m *moment, cell quantity.Cell, more, back quantity.Units, heard bool) bool {
	h := m.envoy.cells[cell]
	if cell >= r.cells || h.held+more > r.maxHeld || h.returned+back > min(r.maxHandBack, h.held) {
		return false
	}
	before := m.bucket().rows[cell][assignedMark+searchNode]
	known := h
	h.returned += back
	g := m.store.Assign(m.now, Assign{Fence: searchGuard, Target: Target{Key: "k",
		Terms: r.terms()}, Holder: searchNode, Cell: cell, Held: h.held + more,
		Returned: h.returned})
	if heard {
		h.held = max(h.held, g.Held)
	}
	m.envoy.cells[cell] = h
	return g.Status == StatusOK && (h != known || before.Lent != g.Held ||
		before.Regained != g.Returned)
}

// hideAssigned hides what is assigned from a store.
func hideAssigned(b *bucket) (restore func()) {
	hidden := map[quantity.Cell]Row{}
	for cell, rows := range b.rows {
		if row, any := rows[assignedMark+searchNode]; any {
			hidden[cell] = row
			delete(rows, assignedMark+searchNode)
		}
	}
	return func() {
		for cell, row := range hidden {
			b.setRow(cell, assignedMark+searchNode, row)
		}
	}
}

// tokensOf returns what else makes a moment of a token bucket: levels, and what is held.
func (r *region) tokensOf(m *moment) (numbers []quantity.StoreTime) {
	h := m.store.hold("k", r.terms(), m.now)
	numbers = append(numbers, quantity.StoreTime(openTokens(h).(*tokens).level),
		quantity.StoreTime(m.envoy.level))
	for cell := CellAt(m.now, r.cell); cell < r.cells; cell++ {
		row, knows := h.rows[cell][assignedMark+searchNode], m.envoy.cells[cell]
		for _, n := range []quantity.Units{row.Lent, row.Regained, knows.held, knows.returned} {
			numbers = append(numbers, quantity.StoreTime(n))
		}
	}
	if r.mutant.admitsAssigned || r.mutant.lendsAssigned { // where the level depends on who looks
		numbers = append(numbers, quantity.StoreTime(m.bucket().level),
			quantity.StoreTime(m.bucket().at))
	}
	return numbers
}

// own are the acts that a region does by itself.
func (s *space) own() acts {
	switch {
	case s.always: // and nothing is assigned
		return hold.alone() - 1
	case s.kind == TokenBucket:
		return hear.alone() - 1 - charge.alone()
	}
	return charge.alone() - 1
}

// fullPool is the level of the bucket that judges when it is full.
func (s *space) fullPool() int16 {
	burst := s.burst[0] + s.burst[1] + s.envoyBurst[0] + s.envoyBurst[1]
	return int16(int64(burst) * s.window)
}

func (s *space) refillPool(level int16) int16 {
	if s.kind != TokenBucket {
		return level
	}
	return min(level+searchLimit, s.fullPool())
}

func (s *space) drainPool(level int16, units quantity.Units) int16 {
	if s.kind != TokenBucket {
		return level
	}
	return level - int16(int64(units)*s.window)
}

// envoySpaces are spaces of token buckets, as searched has them of windows.
var envoySpaces = map[string]struct {
	fewest int
	space
}{
	"one Envoy, nothing handed back": {400_000, space{kind: TokenBucket, window: 2, cell: 2,
		cells: 2, maxLent: 1, maxBack: 1, burst: [2]quantity.Units{1, 1}, envoyBurst: [2]quantity.Units{1, 0},
		maxHeld: 2}},
	"one Envoy, no loan returned": {500_000, space{kind: TokenBucket, window: 2, cell: 2, cells: 2,
		maxLent: 1, burst: [2]quantity.Units{1, 1}, envoyBurst: [2]quantity.Units{1, 0},
		maxHeld: 2, maxHandBack: 1}},
	"Envoys in both regions, no loans": {50_000, space{kind: TokenBucket, window: 2, cell: 2,
		cells: 2, burst: [2]quantity.Units{1, 1}, envoyBurst: [2]quantity.Units{1, 1},
		maxHeld: 2, maxHandBack: 1}},
	"no Envoys, charged always": {50_000, space{kind: TokenBucket, window: 2, cell: 2, cells: 3,
		maxLent: 1, maxBack: 1, burst: [2]quantity.Units{1, 1}, always: true}},
}

// TestEveryReachableStateWithEnvoysKeepsTheCeiling: stores and Envoys never admit what one bucket
// with the whole limit would not, whatever is held, handed back, lent and returned in whatever
// order, and whichever answers are lost.
func TestEveryReachableStateWithEnvoysKeepsTheCeiling(t *testing.T) {
	for name, s := range envoySpaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := explore(&s.space, searchStates)
			switch {
			case f.broken != "":
				t.Fatalf("after %d states %s; the way there: %s", f.states, f.broken, f.way)
			case f.states < s.fewest || f.states >= searchStates:
				t.Fatalf("%d states: the search has not seen the whole of a space worth searching",
					f.states)
			}
			t.Logf("%d states", f.states)
		})
	}
}

// TestSearchFindsBrokenRulesOfEnvoys shows that this search would notice, too.
func TestSearchFindsBrokenRulesOfEnvoys(t *testing.T) {
	for name, m := range map[string]mutant{
		"what is assigned is admitted":          {admitsAssigned: true},
		"what is assigned is lent":              {lendsAssigned: true},
		"a node goes on with what it gave back": {keepsHandedBack: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := envoySpaces["one Envoy, no loan returned"].space
			s.mutant = m
			f := explore(&s, searchStates)
			if !strings.HasPrefix(f.broken, overLimit) {
				t.Fatalf("after %d states: %q", f.states, f.broken)
			}
			t.Logf("noticed after %d states: %s; the way there: %s", f.states, f.broken, f.way)
		})
	}
}
