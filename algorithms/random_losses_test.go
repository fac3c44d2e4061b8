//go:build !race

package algorithms_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

const (
	fragileWindow = int64(100_000_000)
	fragileUnits  = 10 // entitlement of each region
)

// fragile is a region whose store may lose everything, with what is known of it outside the store.
type fragile struct {
	*algorithms.Twin
	name       string
	generation uint64
	journaled  map[rowOf]algorithms.Row // in the readable journals
	use        algorithms.Use           // as it was seen last
	lostAt     quantity.StoreTime       // 0: never
	unknown    []string                 // peers that have not told their rows since
}

type rowOf struct {
	peer string
	cell quantity.Cell
}

// saying is a row as its region once announced it: it may be heard at any time, any number of
// times, or never.
type saying struct {
	from, to                  *fragile
	generation, forGeneration uint64
	cell                      quantity.Cell
	row                       algorithms.Row
}

// losses are three regions that trade, spend and lose their stores at random.
type losses struct {
	random   *rand.Rand
	now      quantity.StoreTime
	terms    algorithms.Terms
	all      []*fragile
	said     []saying
	admitted map[int64]quantity.Units // by cell
	wrong    string
	way      strings.Builder
}

// TestRandomLosses: whichever regions lose their stores, whenever, and whichever others answer, no
// more than the limit is admitted.
func TestRandomLosses(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow,
		algorithms.SlidingWindowCounter} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			lost := 0
			for seed := range uint64(1200) {
				l := newLosses(seed, kind)
				l.run()
				if l.wrong != "" {
					t.Fatalf("seed %d: %s\n%s", seed, l.wrong, &l.way)
				}
				for _, r := range l.all {
					lost += int(r.generation) - 1
				}
			}
			if lost < 1200 {
				t.Errorf("%d losses: the test shows little", lost)
			}
		})
	}
}

func newLosses(seed uint64, kind algorithms.Kind) *losses {
	l := &losses{random: rand.New(rand.NewPCG(seed, 1)),
		now:      quantity.StoreTime(1000*fragileWindow + fragileWindow/10),
		admitted: map[int64]quantity.Units{},
		terms: algorithms.Terms{Kind: kind, Window: fragileWindow, Cell: fragileWindow, Tick: 1,
			Entitlement: fragileUnits, Recovered: true}}
	for _, name := range []string{"a", "b", "c"} {
		r := &fragile{Twin: &algorithms.Twin{}, name: name, generation: 1,
			journaled: map[rowOf]algorithms.Row{}}
		r.Open(l.now, algorithms.Open{Generation: 1, Region: name, Epoch: "1-e"})
		l.all = append(l.all, r)
	}
	return l
}

func (l *losses) run() {
	for range 140 {
		l.act()
	}
	l.spendAll()
	for _, s := range l.said {
		l.hear(s)
	}
	l.spendAll()
}

// act makes one region do one thing.
func (l *losses) act() {
	r, peer := l.all[l.random.IntN(3)], l.all[l.random.IntN(3)]
	switch x := l.random.IntN(20); {
	case x < 2:
		l.spend(r, quantity.Units(1+l.random.Int64N(6)))
	case x < 10 && r != peer:
		l.lend(r, peer, quantity.Cell(int64(l.now)/fragileWindow+l.random.Int64N(2)))
	case x < 15 && len(l.said) > 0:
		l.hear(l.said[l.random.IntN(len(l.said))])
	case x == 15 && l.random.IntN(6) == 0:
		l.lose(r)
	case x == 16 && len(r.unknown) > 0:
		l.restore(r)
	case x == 17 && l.random.IntN(8) == 0:
		l.now += quantity.StoreTime(l.random.Int64N(fragileWindow / 2))
	}
}

func (l *losses) guard(r *fragile) algorithms.Fence {
	return algorithms.Fence{Generation: r.generation, Epoch: "1-e", Clock: l.now}
}

func (l *losses) note(format string, a ...any) { fmt.Fprintf(&l.way, format+"\n", a...) }

func (l *losses) spendAll() {
	for _, r := range l.all {
		for l.spend(r, 1) {
		}
	}
}

// spend reports whether units were admitted, and judges everything admitted so far.
func (l *losses) spend(r *fragile, units quantity.Units) bool {
	d := r.Decide(l.now, algorithms.Decide{Fence: l.guard(r), Commit: true,
		Costs:   []quantity.Units{units},
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "k", Terms: l.terms}}}})
	if d.Status != algorithms.StatusOK {
		return false
	}
	r.use = algorithms.Use{Cell: d.Buckets[0].Cell, Units: d.Buckets[0].Used, At: l.now}
	if !d.Answers[0].Admitted {
		return false
	}
	cell, elapsed := int64(l.now)/fragileWindow, int64(l.now)%fragileWindow
	l.admitted[cell] += units
	l.note("%s admits %d in cell %d", r.name, units, cell)
	weight := l.admitted[cell] * quantity.Units(fragileWindow)
	if l.terms.Kind == algorithms.SlidingWindowCounter {
		weight += l.admitted[cell-1] * quantity.Units(fragileWindow-elapsed)
	}
	if limit := quantity.Units(fragileUnits *
		int64(len(l.all))); weight > limit*quantity.Units(fragileWindow) && l.wrong == "" {
		l.wrong = fmt.Sprintf("cell %d, %d in: %d admitted, %d in the cell before, of %d", cell,
			elapsed, l.admitted[cell], l.admitted[cell-1], limit)
	}
	return true
}

// lend raises what a region lent to a peer and gave back. Half of the rows are in the journal of a
// node that cannot be asked.
func (l *losses) lend(r, peer *fragile, cell quantity.Cell) {
	id := rowOf{peer.name, cell}
	var row algorithms.Row
	for _, one := range r.Inspect(l.now, algorithms.Inspect{Fence: l.guard(r),
		Target: algorithms.Target{Key: "k", Terms: l.terms}}).Rows {
		if (rowOf{one.Peer, one.Cell}) == id {
			row = one.Row
		}
	}
	g := r.Lend(l.now, algorithms.Lend{Fence: l.guard(r), Target: algorithms.Target{Key: "k",
		Terms: l.terms},
		Debit: algorithms.Debit{Peer: peer.name, Cell: cell, Cap: fragileUnits,
			Returned: row.Returned + quantity.Units(l.random.Int64N(8)),
			Lent:     row.Lent + quantity.Units(l.random.Int64N(8))}})
	if g.Status != algorithms.StatusOK {
		return
	}
	if l.random.IntN(2) == 0 {
		j := r.journaled[id]
		j.Lent, j.Returned = max(j.Lent, g.Row.Lent), max(j.Returned, g.Row.Returned)
		r.journaled[id] = j
	}
	l.said = append(l.said, saying{r, peer, r.generation, peer.generation, cell, g.Row})
	l.note("%s tells %s of cell %d: %+v", r.name, peer.name, cell, g.Row)
}

func (l *losses) hear(s saying) {
	if s.forGeneration != s.to.generation {
		return
	}
	c := s.to.Credit(l.now, algorithms.Credit{Fence: l.guard(s.to),
		Target: algorithms.Target{Key: "k", Terms: l.terms},
		Announcement: algorithms.Announcement{Peer: s.from.name,
			PeerGeneration: s.generation,
			Cell:           s.cell, Lent: s.row.Lent, Returned: s.row.Returned, Most: fragileUnits}})
	l.note("%s hears %s of cell %d, %d lent, %d returned: %s", s.to.name, s.from.name, s.cell,
		s.row.Lent, s.row.Returned, c.Status)
}

// lose empties a region's store, opens it anew and restores it.
func (l *losses) lose(r *fragile) {
	l.now++
	r.Twin = &algorithms.Twin{}
	r.generation++
	r.lostAt = r.Open(l.now, algorithms.Open{Generation: r.generation, Region: r.name, Epoch: "1-e",
		Lost: true, Seen: l.now}).LostAt
	l.note("%s loses everything", r.name)
	l.restore(r)
}

// restore asks the peers, half of which answer.
func (l *losses) restore(r *fragile) {
	c := algorithms.Restore{Fence: l.guard(r), Target: algorithms.Target{Key: "k", Terms: l.terms},
		LostAt: r.lostAt,
		Known:  algorithms.Known{Cap: fragileUnits, Use: r.use}}
	for _, peer := range l.all {
		if peer == r {
			continue
		}
		if rows, knows := l.recall(r, peer); knows && l.random.IntN(2) == 0 {
			c.KnownPeers, c.Rows = append(c.KnownPeers, peer.name), append(c.Rows, rows...)
		} else {
			c.UnknownPeers = append(c.UnknownPeers, peer.name)
		}
	}
	for id, row := range r.journaled {
		c.Rows = append(c.Rows, algorithms.RememberedRow{Cell: id.cell, Peer: id.peer,
			Lent: row.Lent, Returned: row.Returned})
	}
	got := r.Restore(l.now, c)
	r.unknown = c.UnknownPeers
	l.note("%s is restored, %v known: share %d, used %d, rows %+v", r.name, c.KnownPeers, got.Share,
		got.Used, got.Rows)
}

// recall returns what a peer has heard of a region's rows, and whether it still knows that for all
// cells in doubt.
func (l *losses) recall(r, peer *fragile) (rows []algorithms.RememberedRow, knows bool) {
	g := peer.Recall(l.now, algorithms.Recall{Fence: l.guard(peer),
		Target: algorithms.Target{Key: "k", Terms: l.terms}, Peer: r.name,
		PeerGeneration: r.generation})
	from := quantity.Cell(int64(r.lostAt)/fragileWindow + 1)
	for l.terms.Weighs(from-1) > r.lostAt {
		from--
	}
	return g.By(peer.name), g.Status == algorithms.StatusOK &&
		(g.LostAt == 0 || from > quantity.Cell(int64(g.LostAt)/fragileWindow+1))
}
