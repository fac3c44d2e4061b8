//go:build !race

package algorithms

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

// The limit that the regions of a pool share: 10 in a window, and a burst of 10.
const (
	pooledWindow = 1000 // microseconds
	pooledLimit  = 10
)

// split is how a limit and its burst are divided among regions.
var splits = [][][2]quantity.Units{
	{{6, 5}, {3, 3}, {1, 2}},
	{{5, 5}, {5, 5}},
	{{10, 9}, {0, 0}, {0, 1}}, // a home region, and regions that only borrow
	{{7, 2}, {3, 8}},
}

// pool is regions that share a limit, and every row that they announced. Any row may be heard at
// any time, any number of times, or never.
type pool struct {
	kind    Kind
	members []*member
	now     quantity.StoreTime
	said    []rowSaid
	history []admission
}

// member is one region.
type member struct {
	Twin
	name  string
	terms Terms
	at    *quantity.StoreTime
}

// rowSaid is what a member announced to another of a cell.
type rowSaid struct {
	from, to   *member
	generation uint64
	cell       quantity.Cell
	row        Row
	at         quantity.StoreTime // when it was said
}

// admission is a cost that some region admitted; a queue's turn may come later. Both times are the
// beginning of a tick, because buckets count time in ticks. In real time a charge may come up to a
// tick later than it counts.
type admission struct {
	at, turn quantity.StoreTime
	cost     quantity.Units
	member   *member
}

func drawPool(t *rapid.T, kind Kind) *pool {
	p := &pool{kind: kind, now: 1_000_000_000}
	terms := Terms{Kind: kind, Window: pooledWindow, Cell: pooledWindow, Tick: 1}
	switch {
	case kind == SlidingWindowCounter:
		terms.Tick = rapid.SampledFrom([]int64{1, 10, 300}).Draw(t, "tick")
	case kind == SlidingWindowLog:
		terms.Cell = rapid.SampledFrom([]int64{1000, 400, 334}).Draw(t, "cell length")
	case kind.Bucket():
		terms.Cell = rapid.SampledFrom([]int64{1000, 400}).Draw(t, "cell length")
		terms.Tick = rapid.SampledFrom([]int64{1, 1, 10, 200}).Draw(t, "tick")
	}
	for i, share := range rapid.SampledFrom(splits).Draw(t, "split") {
		m := &member{name: fmt.Sprintf("region-%d", i), terms: terms, at: &p.now}
		m.terms.Entitlement = share[0]
		if kind.Bucket() {
			m.terms.Burst = share[1]
		}
		m.Open(p.now, Open{Generation: 1, Region: m.name, Epoch: "1-e"})
		p.members = append(p.members, m)
	}
	return p
}

func (m *member) guard() Fence {
	return Fence{Generation: m.Generation, Epoch: "1-e", Clock: *m.at}
}

// row returns a member's ledger row of a peer and a cell.
func (m *member) row(cell quantity.Cell, peer *member) Row {
	if b := m.buckets["k"]; b != nil {
		return b.rows[cell][peer.name]
	}
	return Row{}
}

func (p *pool) draw(t *rapid.T, who string) *member {
	return rapid.SampledFrom(p.members).Draw(t, who)
}

func (p *pool) pair(t *rapid.T) (*member, *member) {
	both := rapid.Permutation(p.members).Draw(t, "from and to")
	return both[0], both[1]
}

// admit makes a member decide costs.
func (p *pool) admit(m *member, costs ...quantity.Units) (any bool) {
	d := m.Decide(p.now, Decide{Fence: m.guard(), Commit: true, Costs: costs,
		Buckets: []LimitTarget{{Target: Target{Key: "k", Terms: m.terms}}}})
	for i, a := range d.Answers {
		if a.Admitted {
			at, turn := p.now, p.now.Add(a.Verdicts[0].Delay)
			if p.kind.Bucket() {
				at, turn = at.Add(-(int64(at) % m.terms.Tick)),
					turn.Add(-(int64(turn) % m.terms.Tick))
			}
			p.history = append(p.history, admission{at: at, turn: turn, cost: costs[i], member: m})
			any = true
		}
	}
	return any
}

// lend is a lend call, whose answer is announced whatever it is.
func (p *pool) lend(from, to *member, cell quantity.Cell, change func(*Lend, Row)) rowSaid {
	row := from.row(cell, to)
	c := Lend{Fence: from.guard(), Target: Target{Key: "k", Terms: from.terms},
		Debit: Debit{Peer: to.name,
			Cell: cell,
			Lent: row.Lent, Returned: row.Returned, Burst: row.BurstLent, Cap: from.terms.Entitlement,
			CapBurst: from.terms.Burst}}
	change(&c, row)
	said := rowSaid{from: from, to: to, generation: from.Generation, cell: cell, at: p.now}
	if g := from.Lend(p.now, c); g.Status == StatusOK {
		said.row = g.Row
		p.said = append(p.said, said)
	}
	return said
}

func (p *pool) deliver(s rowSaid) {
	s.to.Credit(p.now, Credit{Fence: s.to.guard(), Target: Target{Key: "k", Terms: s.to.terms},
		Announcement: Announcement{Peer: s.from.name, PeerGeneration: s.generation,
			Cell: s.cell, Lent: s.row.Lent, Returned: s.row.Returned, Most: s.from.terms.Entitlement,
			Burst: s.row.BurstLent, MostBurst: s.from.terms.Burst, At: s.at}})
}

// actions are what may happen. Demand comes in bursts, because moderate patterns find nothing.
func (p *pool) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"admit": func(t *rapid.T) {
			p.admit(p.draw(t, "region"), rapid.SliceOfN(drawUnits(1, 4), 1, 5).Draw(t, "costs")...)
		},
		"exhaust one": func(t *rapid.T) { p.exhaust(p.draw(t, "region")) },
		"exhaust all": func(t *rapid.T) {
			for _, m := range rapid.Permutation(p.members).Draw(t, "order") {
				p.exhaust(m)
			}
		},
		"lend":         p.drawLend,
		"lend again":   p.drawLend,
		"deliver":      p.drawDelivery,
		"deliver more": p.drawDelivery,
		"give back": func(t *rapid.T) {
			from, to := p.pair(t)
			units := quantity.Units(rapid.Int64Range(1, 10).Draw(t, "units"))
			p.lend(from, to, CellAt(p.now, from.terms.Cell),
				func(c *Lend, row Row) { c.Returned += units })
		},
		"wait":      p.wait,
		"wait more": p.wait,
		"to the end of a cell": func(t *rapid.T) {
			length := p.members[0].terms.Cell
			p.now = (CellAt(p.now, length) + 1).OpensAt(length).Add(-rapid.Int64Range(0, 1).Draw(t,
				"before"))
		},
		"lose a store": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "rare") > 0 {
				return
			}
			m := p.draw(t, "region")
			generation := m.Generation + 1
			m.Flush()
			m.Open(p.now, Open{Generation: generation, Region: m.name, Epoch: "1-e", Lost: true,
				Seen: p.now})
		},
		"": p.check,
	}
}

// exhaust admits whatever fits.
func (p *pool) exhaust(m *member) {
	for cost := quantity.Units(4); cost > 0; cost-- {
		for range pooledLimit { // but no more: with a broken rule there might be no end
			if !p.admit(m, cost) {
				break
			}
		}
	}
}

// drawLend moves rights and burst, mostly at once, as the protocol does when no message is lost.
func (p *pool) drawLend(t *rapid.T) {
	from, to := p.pair(t)
	cell := CellAt(p.now, from.terms.Cell) +
		quantity.Cell(rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "cell"))
	units, burst := quantity.Units(rapid.Int64Range(0, 10).Draw(t, "units")),
		quantity.Units(rapid.Int64Range(0, 4).Draw(t, "burst"))
	said := p.lend(from, to, cell, func(c *Lend, row Row) {
		c.Lent += units
		c.Burst += burst
		c.Kept = quantity.Units(rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "kept"))
	})
	if rapid.IntRange(0, 2).Draw(t, "delivered at once") > 0 {
		p.deliver(said)
	}
}

func (p *pool) drawDelivery(t *rapid.T) {
	if n := len(p.said); n > 0 {
		p.deliver(p.said[n-1-rapid.IntRange(0, min(n-1, 9)).Draw(t, "row")])
	}
}

func (p *pool) wait(t *rapid.T) {
	p.now += quantity.StoreTime(rapid.SampledFrom([]int64{1, 1, 10, 50, 99, 100, 101, 333, 500, 999,
		1000}).Draw(t, "us"))
}

// check asks the oracle of the kind.
func (p *pool) check(t *rapid.T) {
	if broken := oracles[p.kind](p.history, p.now); broken != "" {
		t.Fatalf("after %d us: %s", p.now-1_000_000_000, broken)
	}
}

// oracles judge all admissions of all regions by the limit alone. They know nothing of cells,
// shares and rows.
var oracles = map[Kind]func(history []admission, now quantity.StoreTime) string{
	FixedWindow:          judgeWindows,
	SlidingWindowCounter: judgeEstimates,
	SlidingWindowLog:     judgeLog,
	TokenBucket:          judgeTokens,
	LeakyBucket:          judgeQueue,
}

func judgeWindows(history []admission, _ quantity.StoreTime) string {
	used := map[int64]quantity.Units{}
	for _, a := range history {
		if used[int64(a.at/pooledWindow)] += a.cost; used[int64(a.at/pooledWindow)] > pooledLimit {
			return fmt.Sprintf("%d in a window", used[int64(a.at/pooledWindow)])
		}
	}
	return ""
}

// judgeEstimates weighs the units of the window before by the part of this window that is left,
// exactly.
func judgeEstimates(history []admission, _ quantity.StoreTime) string {
	used := map[int64]quantity.Units{}
	for _, a := range history {
		cell := a.at / pooledWindow
		used[int64(cell)] += a.cost
		if e := used[int64(cell)]*pooledWindow +
			used[int64(cell-1)]*quantity.Units(((cell+1)*pooledWindow).Sub(a.at)); e >
			pooledLimit*pooledWindow {
			return fmt.Sprintf("an estimate of %d/%d", e, pooledWindow)
		}
	}
	return ""
}

func judgeLog(history []admission, _ quantity.StoreTime) string {
	for last, a := range history {
		var used quantity.Units
		for _, b := range history[:last+1] {
			if b.at > a.at-pooledWindow {
				used += b.cost
			}
		}
		if used > pooledLimit {
			return fmt.Sprintf("%d in the window that ends at %d", used, a.at)
		}
	}
	return ""
}

// judgeTokens replays the admissions into one bucket, its level a numerator over the window.
func judgeTokens(history []admission, _ quantity.StoreTime) string {
	level, at := int64(pooledLimit*pooledWindow), quantity.StoreTime(0)
	for _, a := range history {
		level = min(level+pooledLimit*(a.at.Sub(at)), pooledLimit*pooledWindow)
		if level -= int64(a.cost * pooledWindow); level < 0 {
			return fmt.Sprintf("the pooled bucket is at %d/%d", level, pooledWindow)
		}
		at = a.at
	}
	return ""
}

// judgeQueue checks that no more than the burst waits in all regions together, and that turns come
// no faster than the limit. If one server served them, the work begun and not done would be at most
// one request of each region, and a tick for each.
func judgeQueue(history []admission, _ quantity.StoreTime) string {
	if most := maxWaiting(history,
		func(a admission) quantity.StoreTime { return a.at }); most > pooledLimit*pooledWindow {
		return fmt.Sprintf("%d/%d wait", most, pooledWindow)
	}
	inOrder := slices.Clone(history)
	slices.SortStableFunc(inOrder, func(a, b admission) int { return int(a.turn.Sub(b.turn)) })
	largest, waiting := map[*member]quantity.Units{}, quantity.Units(0)
	for _, a := range history {
		largest[a.member] = max(largest[a.member],
			a.cost*pooledWindow+quantity.Units(pooledLimit*a.member.terms.Tick))
	}
	for size := range maps.Values(largest) {
		waiting += size
	}
	if most := maxWaiting(inOrder,
		func(a admission) quantity.StoreTime { return a.turn }); most > waiting {
		return fmt.Sprintf("%d/%d are called before their time, of at most %d", most, pooledWindow,
			waiting)
	}
	return ""
}

// maxWaiting returns the largest backlog that the admissions give one server at the given times.
func maxWaiting(history []admission,
	comes func(admission) quantity.StoreTime) (most quantity.Units) {
	var backlog quantity.Units
	var at quantity.StoreTime
	for _, a := range history {
		backlog = max(backlog-quantity.Units(pooledLimit*(comes(a).Sub(at))), 0) +
			a.cost*pooledWindow
		at = comes(a)
		most = max(most, backlog)
	}
	return most
}

// TestThePoolHoldsTheLimit: two or three regions trade rights over messages that are late, lost,
// doubled and out of order, and lose their stores now and then. Together they never admit more than
// one region with the whole limit could.
func TestThePoolHoldsTheLimit(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			var admitted, traded int
			suite.Check(t, func(t *rapid.T) {
				p := drawPool(t, kind)
				for range 4 { // longer histories than one Repeat
					t.Repeat(p.actions())
				}
				admitted += len(p.history)
				for _, said := range p.said {
					if said.row.Lent > 0 && said.to.row(said.cell, said.from).Borrowed > 0 {
						traded++
					}
				}
			})
			if admitted == 0 || traded == 0 {
				t.Fatalf("%d admissions, %d trades: the test saw nothing", admitted, traded)
			}
			t.Logf("%d admissions, %d trades", admitted, traded)
		})
	}
}
