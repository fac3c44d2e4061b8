//go:build !race

package algorithms

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// region is one region of a search, with every moment it was found in. The outcome of an act
// depends only on the region's store and clock. So the twin runs each act once for a moment, not
// once for each world, and worlds share the moments.
type region struct {
	*space
	self    int
	moments []*moment
	ids     map[string]int32
}

// moment is a region's store at one time of the region's clock, with the units that the search saw
// the region admit.
type moment struct {
	store    *Twin
	now      quantity.StoreTime
	admitted []quantity.StoreTime // units, by slot
	rows     []Row                // with the other region, by cell
	weight   quantity.StoreTime   // what counts of the units admitted; see weigh
	// acts of hearing a row that is no news: known already, or of a finished cell
	deaf    acts
	envoy   searchEnvoy
	spent   quantity.Units // of the charge that led here
	results []result       // of each act, once tried
}

// act is an act of a region: one of those below, or hear plus the number of a row that the other
// region announced.
type act uint8

const (
	admit     act = iota
	lend          // one unit of this cell
	giveBack      // one unit of this cell
	promise       // one unit of the next cell
	giveAhead     // one unit of the next cell back: returns are for the current cell only
	tick
	charge       // two units of a limit that is charged always, unless some are owed
	hold         // one unit of this cell, for an Envoy: these five are of token buckets alone
	holdUnheard  // the same, and the answer is lost
	holdAhead    // one unit of the next cell
	handBack     // one unit of this cell that was held
	admitUnasked // by the Envoy
	hear
)

var actNames = [hear]string{"admits", "lends", "gives back", "promises", "gives back ahead",
	"ticks", "is charged two", "holds", "holds without hearing so", "holds ahead", "hands back", "admits unasked"}

// result is the moment that an act leads to, and the acts that it opens to the other region:
// hearing the row that it announced. An act that is refused or changes nothing leads back to its
// own moment.
type result struct {
	tried bool
	to    int32
	opens acts
	spent quantity.Units // what was admitted, less what is owed of it
}

func newRegion(s *space, self int) *region {
	r := &region{space: s, self: self, ids: map[string]int32{}}
	m := &moment{store: &Twin{}, now: s.ahead[self], admitted: make([]quantity.StoreTime,
		s.slot(s.end())+1)}
	m.store.Open(m.now, Open{Generation: 1, Region: regionNames[self], Epoch: "e"})
	m.envoy = s.newEnvoy(self)
	r.intern(m)
	return r
}

func (r *region) peer() string { return regionNames[1-r.self] }

// bucket is the only one there is.
func (m *moment) bucket() *bucket { return m.store.bucket("k") }

// row is the one with the other region of a cell.
func (r *region) row(m *moment, cell quantity.Cell) Row { return m.bucket().rows[cell][r.peer()] }

// clone copies a moment to act on.
func (m *moment) clone() *moment {
	t, b := *m.store, *m.bucket()
	t.floors = maps.Clone(t.floors)
	t.buckets = map[string]*bucket{"k": &b}
	b.entries = slices.Clone(b.entries)
	b.rows = map[quantity.Cell]map[string]Row{}
	for cell, rows := range m.bucket().rows {
		b.rows[cell] = maps.Clone(rows)
	}
	return &moment{store: &t, now: m.now, admitted: slices.Clone(m.admitted),
		envoy: m.envoy.clone()}
}

// intern returns the number of a moment, a new number if the moment is new.
func (r *region) intern(m *moment) int32 {
	key := r.key(m)
	id, ok := r.ids[key]
	if !ok {
		id = int32(len(r.moments))
		r.ids[key] = id
		r.moments = append(r.moments, m)
		r.finish(m)
	}
	return id
}

// finish computes the properties of a moment that the search needs.
func (r *region) finish(m *moment) {
	m.results = make([]result, r.beyond())
	m.weight = r.weigh(m)
	for cell := range r.cells {
		m.rows = append(m.rows, r.row(m, cell))
	}
	for a := hear; a < r.beyond(); a++ {
		said := r.heard(a)
		row := m.rows[said.cell]
		if said.cell < CellAt(m.now, r.cell) || said.lent <= row.Borrowed &&
			said.returned <= row.Regained {
			m.deaf |= a.alone()
		}
	}
}

// key identifies a moment. Of a finished cell only the loans may still matter, until they no longer
// weigh; of the admissions only those that count.
func (r *region) key(m *moment) string {
	k := make([]byte, 0, 64)
	put := func(numbers ...quantity.StoreTime) {
		for _, n := range numbers {
			k = binary.AppendVarint(k, int64(n))
		}
	}
	current, b := CellAt(m.now, r.cell), m.bucket()
	put(m.now)
	for cell := range r.cells {
		switch row := r.row(m, cell); {
		case cell >= current:
			put(quantity.StoreTime(row.Lent), quantity.StoreTime(row.Returned),
				quantity.StoreTime(row.Borrowed), quantity.StoreTime(row.Regained))
		case r.over(cell) > m.now:
			put(quantity.StoreTime(row.out()))
		}
	}
	switch current {
	case b.cell:
		put(quantity.StoreTime(b.used), quantity.StoreTime(b.before))
	case b.cell + 1:
		put(quantity.StoreTime(b.used), -1)
	}
	for _, e := range b.entries {
		if e.at.Add(r.window) > m.now {
			put(e.at, quantity.StoreTime(e.units))
		}
	}
	put(-1)
	put(m.admitted[r.since(m.now):]...)
	if r.kind == TokenBucket {
		put(r.tokensOf(m)...)
	}
	return string(k)
}

// after returns what comes of an act.
func (r *region) after(id int32, a act) result {
	was := r.moments[id]
	if got := was.results[a]; got.tried {
		return got
	}
	got := result{tried: true, to: id}
	m := was.clone()
	if opens, done := r.do(m, a); done {
		got.to, got.opens = r.intern(m), opens
		switch a {
		case admit, admitUnasked:
			got.spent = 1
		case charge:
			got.spent = m.spent
		}
	}
	was.results[a] = got
	return got
}

// do lets a region act. It returns the acts that this opens to the other region, and whether the
// act was done at all.
func (r *region) do(m *moment, a act) (opens acts, done bool) {
	cell := CellAt(m.now, r.cell)
	switch a {
	case admit:
		return 0, r.admit(m)
	case lend:
		return r.lend(m, cell, 1, 0)
	case giveBack:
		return r.lend(m, cell, 0, 1)
	case promise:
		return r.lend(m, cell+1, 1, 0)
	case giveAhead:
		return r.lend(m, cell+1, 0, 1)
	case tick:
		return 0, r.tick(m)
	case charge:
		return 0, r.charge(m)
	case hold, holdUnheard:
		return 0, r.hold(m, cell, 1, 0, a == hold)
	case holdAhead:
		return 0, r.hold(m, cell+1, 1, 0, true)
	case handBack:
		return 0, r.hold(m, cell, 0, 1, true)
	case admitUnasked:
		return 0, m.envoy.admit(r.window)
	}
	return 0, r.hear(m, r.heard(a))
}

func (r *region) terms() Terms {
	return Terms{Kind: r.kind, Window: r.window, Cell: r.cell, Tick: 1,
		Entitlement: entitlements[r.self], Burst: r.burst[r.self], ClockMargin: r.guard}
}

var searchGuard = Fence{Generation: 1, Epoch: "e"}

func (r *region) admit(m *moment) bool {
	restore := r.mutant.hide(m.bucket(), CellAt(m.now, r.cell)+1)
	if r.mutant.admitsAssigned {
		restore = hideAssigned(m.bucket())
	}
	d := m.store.Decide(m.now, Decide{Fence: searchGuard, Commit: true, Costs: []quantity.Units{1},
		Buckets: []LimitTarget{{Target: Target{Key: "k", Terms: r.terms()}}}})
	restore()
	if d.Status != StatusOK || !d.Answers[0].Admitted {
		return false
	}
	if r.kind != TokenBucket { // whose worlds have one bucket that judges them
		m.admitted[r.slot(m.now)]++
	}
	return true
}

// charge charges two units, whatever is left. What is owed of them counts nowhere.
func (r *region) charge(m *moment) bool {
	b := LimitTarget{Target: Target{Key: "k", Terms: r.terms()}, Always: true, MostOwed: 2}
	if s := m.store.hold("k", r.terms(), m.now).limiter().state(); s.Free == 0 && s.Used > max(s.Share, r.burst[r.self]) {
		return false // it would owe ever more
	}
	d := m.store.Decide(m.now, Decide{Fence: searchGuard, Commit: true, Costs: []quantity.Units{2},
		Buckets: []LimitTarget{b}})
	if d.Status != StatusOK {
		return false
	}
	m.spent = 2 - d.Answers[0].Verdicts[0].Owed
	if r.kind != TokenBucket {
		m.admitted[r.slot(m.now)] += quantity.StoreTime(m.spent)
	}
	return true
}

// lend raises the row of a cell.
func (r *region) lend(m *moment, cell quantity.Cell, lent, returned quantity.Units) (opens acts,
	done bool) {
	row := r.row(m, cell)
	if cell >= r.cells || row.Lent+lent > r.maxLent || row.Returned+returned > r.maxBack {
		return 0, false
	}
	restore := func() {}
	if r.mutant.lendsAssigned {
		restore = hideAssigned(m.bucket())
	}
	if cell == CellAt(m.now, r.cell) && r.mutant.overlooks {
		restore = r.mutant.hide(m.bucket(), cell+1)
	}
	g := m.store.Lend(m.now, Lend{Fence: searchGuard, Target: Target{Key: "k", Terms: r.terms()},
		Debit: Debit{Peer: r.peer(), Cell: cell,
			Lent: row.Lent + lent, Returned: row.Returned + returned, Cap: r.mutant.lendable(r.self)}})
	restore()
	if g.Row.Lent == row.Lent && g.Row.Returned == row.Returned {
		return 0, false
	}
	return r.hears(announced{cell, g.Row.Lent, g.Row.Returned}).alone(), true
}

func (r *region) hear(m *moment, a announced) bool {
	if hear := r.mutant.hear; hear != nil && hear(m.bucket(), r.peer(), CellAt(m.now, r.cell), a) {
		return true
	}
	c := m.store.Credit(m.now,
		Credit{Fence: searchGuard, Target: Target{Key: "k", Terms: r.terms()},
			Announcement: Announcement{Peer: r.peer(),
				PeerGeneration: 1,
				Cell:           a.cell, Lent: a.lent, Returned: a.returned,
				Most: r.mutant.lendable(1 - r.self)}})
	return c.Status == StatusOK
}

func (r *region) tick(m *moment) bool {
	if m.now == r.end() {
		return false
	}
	held := m.envoy.cells[CellAt(m.now, r.cell)]
	if r.mutant.keepsHandedBack {
		held.returned = 0
	}
	m.envoy.refill(held.own(), r.window)
	m.now++
	if r.mutant.forgets {
		maps.DeleteFunc(m.bucket().rows,
			func(cell quantity.Cell, _ map[string]Row) bool { return cell < CellAt(m.now, r.cell) })
	}
	return true
}
