//go:build !race

package algorithms

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// envoyPool is a pool of token buckets whose regions have nodes that assign rights to Envoys. The
// regions' stores hold less than the pool's burst: the rest is for the Envoys' token buckets.
type envoyPool struct {
	*pool
	nodes []*envoyNode
	calls []assignCall // all that were ever sent: any may arrive again, at any time
	// answers that gave a node rights, and what Envoys admitted beyond the tokens that were charged
	held     int
	refilled quantity.Units
}

// envoyNode is a node with an Envoy, which admits by itself what the node holds. Its Envoy's token
// bucket is refilled with the rights of each cell that the node then knows to hold, and was filled
// with tokens that the node had charged to the store.
type envoyNode struct {
	*member
	name  string
	most  quantity.Units // tokens that the Envoy's bucket may hold at most
	burst quantity.Units // that it holds when it is full: so much was charged
	level quantity.Units // numerator over the window
	// tokens that were charged, less what was admitted since
	charged quantity.Units
	tick    quantity.StoreTime
	cells   map[quantity.Cell]*envoyHold
}

// envoyHold is what a node knows of its sums of a cell: the largest that it heard, and the largest
// that it said it returned.
type envoyHold struct{ held, returned quantity.Units }

// own is the rate that the Envoy has.
func (e *envoyHold) own() quantity.Units { return max(e.held-e.returned, 0) }

type assignCall struct {
	node *envoyNode
	Assign
}

func drawEnvoyPool(t *rapid.T) *envoyPool {
	p := &envoyPool{pool: drawPool(t, TokenBucket)}
	for _, m := range p.members {
		part := (m.terms.Burst + drawUnits(0, 1).Draw(t, "round up")) / 2
		m.terms.Burst -= part
		first := rapid.SampledFrom([]quantity.Units{part, part / 2}).Draw(t, "first node's part")
		for i, most := range []quantity.Units{first, part - first} {
			// All begin full: stores and Envoys hold as much as the one bucket that judges them.
			p.nodes = append(p.nodes, &envoyNode{member: m, name: fmt.Sprint("n", i), most: most,
				burst: most, charged: most, level: most * pooledWindow, tick: p.now,
				cells: map[quantity.Cell]*envoyHold{}})
		}
	}
	return p
}

// hold returns what a node knows of a cell.
func (e *envoyNode) hold(cell quantity.Cell) *envoyHold {
	if e.cells[cell] == nil {
		e.cells[cell] = &envoyHold{}
	}
	return e.cells[cell]
}

// refill brings the Envoy's bucket up to the beginning of this tick, cell by cell.
func (e *envoyNode) refill() {
	now := e.at.Add(-(int64(*e.at) % e.terms.Tick))
	for e.tick < now {
		cell := CellAt(e.tick, e.terms.Cell)
		end := min((cell + 1).OpensAt(e.terms.Cell), now)
		e.level += e.hold(cell).own() * quantity.Units(end.Sub(e.tick))
		e.level, e.tick = min(e.level, e.burst*pooledWindow), end
	}
}

// send is a call about a cell. The node counts what it returns as gone before it says so.
func (p *envoyPool) send(e *envoyNode, cell quantity.Cell,
	held, returned quantity.Units) assignCall {
	e.refill()
	h := e.hold(cell)
	h.returned += returned
	c := assignCall{e, Assign{Fence: e.guard(), Target: Target{Key: "k", Terms: e.terms},
		Holder: e.name, Cell: cell, Held: h.held + held, Returned: h.returned}}
	p.calls = append(p.calls, c)
	return c
}

// arrive has the store answer a call. The answer may be lost.
func (p *envoyPool) arrive(c assignCall, lost bool) {
	c.Fence = c.node.guard()
	g := c.node.Assign(p.now, c.Assign)
	if g.Status != StatusOK || lost {
		return
	}
	c.node.refill()
	h := c.node.hold(c.Cell)
	if g.Held > h.held {
		h.held = g.Held
		p.held++
	}
}

// charge has the store charge tokens for the Envoy's bucket, which then holds so many more.
func (p *envoyPool) charge(e *envoyNode, units quantity.Units) {
	e.refill()
	d := e.Decide(p.now, Decide{Fence: e.guard(), Commit: true, Costs: []quantity.Units{units},
		Buckets: []LimitTarget{{Target: Target{Key: "k", Terms: e.terms}}}})
	if d.Status == StatusOK && d.Answers[0].Admitted {
		e.burst += units
		e.charged += units
		e.level += units * pooledWindow
	}
}

// admits has the Envoy admit costs as long as they fit.
func (p *envoyPool) admits(e *envoyNode, cost quantity.Units, times int) {
	e.refill()
	for ; times > 0 && e.level >= cost*pooledWindow; times-- {
		e.level -= cost * pooledWindow
		p.history = append(p.history, admission{at: e.tick, turn: e.tick, cost: cost,
			member: e.member})
		if e.charged -= cost; e.charged < 0 {
			p.refilled, e.charged = p.refilled-e.charged, 0
		}
	}
}

func (p *envoyPool) node(t *rapid.T) *envoyNode {
	return rapid.SampledFrom(p.nodes).Draw(t, "node")
}

// drawHold makes a node ask for rights, or return some; answers are lost now and then.
func (p *envoyPool) drawHold(t *rapid.T) {
	e := p.node(t)
	cell := CellAt(p.now, e.terms.Cell) +
		quantity.Cell(rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "cell"))
	c := p.send(e, cell, rapid.SampledFrom([]quantity.Units{10, 10, 3, 0}).Draw(t, "held"),
		rapid.SampledFrom([]quantity.Units{0, 0, 0, 3, 10}).Draw(t, "returned"))
	c.Kept = rapid.SampledFrom([]quantity.Units{0, 0, 1}).Draw(t, "kept")
	if fate := rapid.IntRange(0, 5).Draw(t, "fate"); fate < 5 {
		p.arrive(c, fate == 4)
	}
}

// all has all Envoys and all stores admit whatever fits.
func (p *envoyPool) all(t *rapid.T) {
	for _, e := range rapid.Permutation(p.nodes).Draw(t, "order of nodes") {
		p.admits(e, 1, pooledLimit)
		p.exhaust(e.member)
	}
}

func (p *envoyPool) actions() map[string]func(*rapid.T) {
	actions := p.pool.actions()
	delete(actions, "exhaust all")
	delete(actions, "admit")
	for _, name := range []string{"hold", "hold again", "hold more"} {
		actions[name] = p.drawHold
	}
	actions["all admit"], actions["all admit again"] = p.all, p.all
	actions["all admit, wait, and admit"] = func(t *rapid.T) {
		p.all(t)
		p.now += quantity.StoreTime(rapid.SampledFrom([]int64{99, 100, 200, 333, 500}).Draw(t,
			"us"))
		p.all(t)
	}
	actions["a call arrives late"] = func(t *rapid.T) {
		if n := len(p.calls); n > 0 {
			p.arrive(p.calls[n-1-rapid.IntRange(0, min(n-1, 9)).Draw(t, "call")], false)
		}
	}
	actions["charge"] = func(t *rapid.T) {
		if e := p.node(t); e.most > e.burst {
			p.charge(e, drawUnits(1, int64(e.most-e.burst)).Draw(t, "units"))
		}
	}
	actions["an assignment ends"] = func(t *rapid.T) {
		if rapid.IntRange(0, 3).Draw(t, "rare") > 0 {
			return
		}
		e := p.node(t)
		e.refill()
		e.burst, e.level, e.charged = 0, 0, 0
	}
	return actions
}

// TestThePoolHoldsTheLimitWithEnvoys: regions trade rights and assign them to Envoys, which admit
// without asking. Calls and rows are late, lost, doubled and out of order. Stores and Envoys
// together never admit more than one bucket with the whole limit could.
func TestThePoolHoldsTheLimitWithEnvoys(t *testing.T) {
	var held int
	var refilled quantity.Units
	suite.Check(t, func(t *rapid.T) {
		p := drawEnvoyPool(t)
		for range 8 { // longer histories than one Repeat
			t.Repeat(p.actions())
		}
		held += p.held
		refilled += p.refilled
	})
	if held == 0 || refilled == 0 {
		t.Fatalf("%d holds, %d units by them: the test saw nothing", held, refilled)
	}
	t.Logf("%d holds, %d units by them", held, refilled)
}
