package algorithms

import (
	"fmt"
	"maps"
	"testing"
)

// The search goes through every state that two regions (F = 2 and 1, two cells, clocks apart by up to one cell) can
// reach by admitting, lending, giving back, promising, hearing and ticking, where any row ever announced may be heard
// at any time, any number of times, or never. Random runs miss what it finds.
const (
	searchWindow = 10
	searchCells  = 2
	mostRow      = 2 // rows are cumulative: lending and giving back in turn would raise them for ever
)

var searchF = [2]int64{2, 1}

// world is one state: the twins of both stores, each region's clock, what was announced and what was admitted.
type world struct {
	store    [2]*Twin
	cell     [2]int64
	said     uint64 // a bit for each announced
	admitted [searchCells]int64
}

// announced is a row that left region from; its numbers are at most mostRow.
type announced struct {
	from           int
	cell           int64
	lent, returned int64
}

func (a announced) bit() uint64 {
	return 1 << (uint64(a.from)<<5 | uint64(a.cell)<<4 | uint64(a.lent)<<2 | uint64(a.returned))
}

// heard returns every row announced by region from of cells not over before the given one.
func (w *world) heard(from int, cell int64) (all []announced) {
	for ; cell < searchCells; cell++ {
		for n := range int64(16) {
			if a := (announced{from, cell, n >> 2, n & 3}); w.said&a.bit() != 0 {
				all = append(all, a)
			}
		}
	}
	return all
}

var searchNames = [2]string{"a", "b"}

// clone copies a state for region i to act on; the other region's store is not touched and shared.
func (w *world) clone(i int) *world {
	c := *w
	t := *w.store[i]
	t.floors = maps.Clone(t.floors)
	t.buckets = map[string]*bucket{}
	for key, b := range w.store[i].buckets {
		copied := *b
		copied.rows = map[int64]map[string]Row{}
		for cell, all := range b.rows {
			copied.rows[cell] = maps.Clone(all)
		}
		t.buckets[key] = &copied
	}
	c.store[i] = &t
	return &c
}

func (w *world) terms(i int) Terms {
	return Terms{Kind: FixedWindow, Window: searchWindow, Entitlement: searchF[i]}
}

func (w *world) guard() Guard { return Guard{Generation: 1, Epoch: "e"} }

func (w *world) rows(i int, cell int64) Row {
	if b := w.store[i].buckets["k"]; b != nil {
		return b.rows[cell][searchNames[1-i]]
	}
	return Row{}
}

// share is S of a cell as region i's rows have it.
func (w *world) share(i int, cell int64) int64 { return searchF[i] + w.rows(i, cell).net() }

// key tells states apart; what is over in both regions does not count.
func (w *world) key() string {
	k := make([]byte, 0, 40)
	for i := range w.store {
		k = append(k, byte(w.cell[i]))
		if b := w.store[i].buckets["k"]; b != nil && b.cell == w.cell[i] {
			k = append(k, byte(b.used))
		} else {
			k = append(k, 0)
		}
		for cell := w.cell[i]; cell < searchCells; cell++ {
			r := w.rows(i, cell)
			k = append(k, byte(r.Lent), byte(r.Returned), byte(r.Borrowed), byte(r.Regained))
		}
		for _, a := range w.heard(i, w.cell[1-i]) {
			k = append(k, byte(a.cell<<4|a.lent<<2|a.returned))
		}
		k = append(k, 0xff)
	}
	for _, units := range w.admitted[min(w.cell[0], w.cell[1]):] {
		k = append(k, byte(units))
	}
	return string(k)
}

// broken says which invariant a state breaks.
func (w *world) broken() string {
	limit := searchF[0] + searchF[1]
	for cell := range int64(searchCells) {
		if w.admitted[cell] > limit {
			return fmt.Sprintf("cell %d admitted %d of %d", cell, w.admitted[cell], limit)
		}
		if cell < max(w.cell[0], w.cell[1]) {
			continue // over in one region, whose rows of it are gone
		}
		a, b := w.rows(0, cell), w.rows(1, cell)
		switch {
		case w.share(0, cell)+w.share(1, cell) > limit:
			return fmt.Sprintf("cell %d: shares %d + %d exceed %d", cell, w.share(0, cell), w.share(1, cell), limit)
		case a.Borrowed > b.Lent || b.Borrowed > a.Lent:
			return fmt.Sprintf("cell %d: more borrowed than lent", cell)
		case a.Regained > b.Returned || b.Regained > a.Returned:
			return fmt.Sprintf("cell %d: more regained than returned", cell)
		case a.Lent-a.Regained > searchF[0] || b.Lent-b.Regained > searchF[1]:
			return fmt.Sprintf("cell %d: a region lent more than its own", cell)
		}
	}
	return ""
}

// mutant leaves out one rule.
type mutant func(w *world, i int, a announced) bool

// next returns the states one act away.
func (w *world) next(m mutant) []*world {
	var all []*world
	for i := range w.store {
		act := func(do func(n *world) bool) {
			if n := w.clone(i); do(n) {
				all = append(all, n)
			}
		}
		now := w.cell[i] * searchWindow
		act(func(n *world) bool { // admit
			d := n.store[i].Decide(now, Decide{Guard: w.guard(), Commit: true, Costs: []int64{1},
				Buckets: []Target{{Key: "k", Terms: w.terms(i)}}})
			if !d.Answers[0].Admitted {
				return false
			}
			n.admitted[d.Buckets[0].Cell]++
			return true
		})
		for _, cell := range []int64{w.cell[i], w.cell[i] + 1} {
			if cell >= searchCells {
				continue
			}
			row := w.rows(i, cell)
			for _, ask := range [][2]int64{{row.Lent + 1, row.Returned}, {row.Lent, row.Returned + 1}} { // lend one, give one back
				act(func(n *world) bool {
					g := n.store[i].Lend(now, Lend{Guard: w.guard(), Key: "k", Terms: w.terms(i), Peer: searchNames[1-i],
						Cell: cell, Lent: ask[0], Returned: ask[1], Cap: searchF[i]})
					n.said |= announced{i, cell, g.Lent & 3, g.Returned & 3}.bit()
					return (g.Lent > row.Lent || g.Returned > row.Returned) && max(g.Lent, g.Returned) <= mostRow
				})
			}
		}
		for _, a := range w.heard(1-i, 0) {
			act(func(n *world) bool {
				if m != nil && m(n, i, a) {
					return true
				}
				return n.store[i].Credit(now, Credit{Guard: w.guard(), Key: "k", Terms: w.terms(i), Peer: searchNames[a.from],
					PeerGeneration: 1, Cell: a.cell, Lent: a.lent, Returned: a.returned, Most: searchF[a.from]}).Status == StatusOK
			})
		}
		if w.cell[i] < searchCells-1 {
			act(func(n *world) bool { n.cell[i]++; return true })
		}
	}
	return all
}

// search returns how many states there are, and the first broken one with the way to it.
func search(m mutant, most int) (states int, broken string) {
	begin := &world{}
	for i := range begin.store {
		begin.store[i] = &Twin{}
		begin.store[i].Open(0, Open{Generation: 1, Region: searchNames[i], Epoch: "e"})
	}
	seen := map[string]bool{begin.key(): true}
	for queue := []*world{begin}; len(queue) > 0 && len(seen) < most; queue = queue[1:] {
		for _, n := range queue[0].next(m) {
			if bad := n.broken(); bad != "" {
				return len(seen), bad
			}
			if key := n.key(); !seen[key] {
				seen[key] = true
				queue = append(queue, n)
			}
		}
	}
	return len(seen), ""
}

// searchStates bounds the search; the whole space is smaller.
const searchStates = 2_000_000

func TestEveryReachableStateKeepsTheCeiling(t *testing.T) {
	states, broken := search(nil, searchStates)
	if broken != "" {
		t.Fatal(broken)
	}
	if states >= searchStates || states < 10_000 {
		t.Fatalf("%d states: the search has not seen the whole of a space worth searching", states)
	}
	t.Logf("%d states", states)
}

// TestSearchFindsBrokenRules shows that the search would notice.
func TestSearchFindsBrokenRules(t *testing.T) {
	mutants := map[string]mutant{
		"a row heard twice counts twice": func(w *world, i int, a announced) bool {
			b := w.store[i].bucket("k")
			row := b.rows[a.cell][searchNames[a.from]]
			row.Borrowed += a.lent
			b.setRow(a.cell, searchNames[a.from], row)
			return a.lent > 0 && row.Borrowed <= 6
		},
		"rows of one cell count in the next": func(w *world, i int, a announced) bool {
			if a.cell >= w.cell[i] {
				return false
			}
			b := w.store[i].bucket("k")
			row := b.rows[w.cell[i]][searchNames[a.from]]
			row.Borrowed = max(row.Borrowed, a.lent)
			b.setRow(w.cell[i], searchNames[a.from], row)
			return true
		},
		"a return is regained without having been given": func(w *world, i int, a announced) bool {
			b := w.store[i].bucket("k")
			row := b.rows[a.cell][searchNames[a.from]]
			row.Regained = row.Lent
			b.setRow(a.cell, searchNames[a.from], row)
			return row.Lent > 0
		},
	}
	for name, m := range mutants {
		states, broken := search(m, searchStates)
		if broken == "" {
			t.Errorf("%s: not noticed in %d states", name, states)
		} else {
			t.Logf("%s: noticed after %d states: %s", name, states, broken)
		}
	}
}
