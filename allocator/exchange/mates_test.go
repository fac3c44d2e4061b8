//go:build !race

package exchange

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// nodes returns the nodes of a region.
func (c *cluster) nodes(name string) []*testRegion {
	return append([]*testRegion{c.regions[name]}, c.mates[name]...)
}

// anyNode returns one of them.
func (c *cluster) anyNode(name string) *testRegion {
	all := c.nodes(name)
	if len(all) == 1 {
		return all[0]
	}
	return all[c.rand.IntN(len(all))]
}

// mate adds a node to a region: it has the region's store, and a memory of its own.
func (c *cluster) mate(name string) *testRegion {
	first := c.regions[name]
	n := &testRegion{cluster: c, name: name, node: fmt.Sprint("n", 2+len(c.mates[name])),
		options: first.options,
		store:   first.store, journal: first.journal, counted: first.counted, offset: first.offset}
	if c.mates == nil {
		c.mates = map[string][]*testRegion{}
	}
	c.mates[name] = append(c.mates[name], n)
	n.start()
	c.after(c.rand.Int64N(Interval), n.tick)
	return n
}

// served returns what the nodes of a region admitted.
func (c *cluster) served(name string) (admitted quantity.Units) {
	for _, n := range c.nodes(name) {
		admitted += n.admitted
	}
	return admitted
}

// TestMatesBorrowAsOne: two nodes of a region with half of its demand each borrow what one node
// with all of the demand does. The lenders keep what both of their nodes need, whichever node is
// asked.
func TestMatesBorrowAsOne(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		for _, rates := range [][]int64{{850, 60, 20}, {650, 200, 100}, {550, 360, 20}} {
			t.Run(fmt.Sprint(kind, rates), func(t *testing.T) {
				if kind == algorithms.SlidingWindowLog {
					suite.Long(t)
				}
				t.Parallel()
				one, two := make([]quantity.Units, len(rates)), make([]quantity.Units, len(rates))
				for seed := range uint64(3) {
					admittedBy(t, seed, kind, rates, 1, one)
					admittedBy(t, seed, kind, rates, 2, two)
				}
				t.Logf("admitted %v by one node in each region, %v by two", one, two)
				for n := range rates {
					if two[n]*10 < one[n]*9 || n == 0 && two[n]*10 > one[n]*11 {
						t.Errorf("region %d: %d admitted by one node, %d by two", n, one[n], two[n])
					}
				}
			})
		}
	}
}

// admittedBy adds what each region admits in six seconds of steady demand that is spread over so
// many nodes in each.
func admittedBy(t *testing.T, seed uint64, kind algorithms.Kind, rates []int64, nodes int64,
	sum []quantity.Units) {
	c := newClusterOf(t, seed, kind, allocator.Second, 400, 400, 200)
	for n, name := range c.names {
		for range nodes - 1 {
			c.mate(name)
		}
		for _, node := range c.nodes(name) {
			node.rate = quantity.MilliRate(rates[n] / nodes)
			node.load()
		}
	}
	c.run(c.now + 3*allocator.Second)
	for n, name := range c.names {
		sum[n] -= c.served(name)
	}
	c.run(c.now + 6*allocator.Second)
	for n, name := range c.names {
		sum[n] += c.served(name)
	}
}

// TestMatesUnderHostility: the invariants of regions with one node hold for regions with two nodes
// that crash one at a time.
func TestMatesUnderHostility(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			const seeds = 24
			var sum tally
			for seed := range seeds * times() {
				c := hostileCluster(t, seed, kind, 1)
				c.hostility(false)
				for _, name := range c.names {
					mate := c.mate(name)
					// A closed bucket asks nobody, so there are fewer effects at which to die.
					c.regions[name].crash *= 3
					mate.crash = c.regions[name].crash
					mate.load()
					c.vary(mate)
				}
				c.survive(seed, 10*allocator.Second)
				sum.add(c)
			}
			sum.mustBeHard(t, kind, quantity.Units(seeds*times()))
		})
	}
}

// vary changes a node's demand again and again; half of the time it has none.
func (c *cluster) vary(r *testRegion) {
	r.rate, r.per = quantity.MilliRate(max(quantity.Units(c.rand.Int64N(int64(2*c.bucket.Limit)))-
		c.bucket.Limit, 0)), c.bucket.Window/allocator.Second
	c.after(c.rand.Int64N(2*allocator.Second), func() { c.vary(r) })
}

// TestALenderKeepsWhatItsMatesNeed: a lender does so for a bucket that it has not used itself, too,
// for as long as the mates' hints are believed.
func TestALenderKeepsWhatItsMatesNeed(t *testing.T) {
	b, m, now := long(allocator.Second)
	kept := func() quantity.Units {
		return m.Step(now, Asked{ID: 5, Message: Message{From: "eu", Generation: 9,
			Asks: []Ask{{Bucket: "w", Cell: algorithms.CellAt(quantity.StoreTime(now), b.Cell) + 1,
				Lent: 380}}}, Buckets: []*Bucket{b}}).Lend[0].Kept
	}
	for _, node := range []string{"n2", "n3"} {
		m.Step(now, Heard{Hint: Hint{Region: "us", Node: node, Bucket: "w", Rate: 100_000}})
	}
	// A hint in this node's own name must not count.
	m.Step(now, Heard{Hint: Hint{Region: "us", Node: "n1", Bucket: "w", Rate: 100_000}})
	if got := kept(); got != 200 {
		t.Errorf("kept %d of a cell that two mates need 200 of", got)
	}
	now += quantity.NodeTime(allocator.HintLife(b.Cell))
	m.denyAll(now, m.Step(now, Tick{Jitter: allocator.PPM}))
	if got := kept(); got != 200 {
		t.Errorf("kept %d while the mates are still believed", got)
	}
	now += Interval
	m.denyAll(now, m.Step(now, Tick{Jitter: allocator.PPM}))
	if got := kept(); got != 0 || len(m.mates) != 0 {
		t.Errorf("kept %d for mates that are gone, %d remembered", got, len(m.mates))
	}
}

// TestMatesPublishWhatTheyUseTogether: two nodes that each use 30 % of the region's part use 60 %
// of it together, so they publish. At 20 % each they publish nothing, and a mate's hint alone does
// not change that.
func TestMatesPublishWhatTheyUseTogether(t *testing.T) {
	// Of 400 units, rate is the demand on each of two nodes.
	for rate, want := range map[quantity.MilliRate]bool{60: false, 80: false, 120: true} {
		c := newClusterOf(t, 1, algorithms.FixedWindow, allocator.Second, 400, 400, 200)
		mate := c.mate("us")
		for _, n := range c.nodes("us") {
			n.machine.nodes = 2
			n.rate = rate
			n.load()
		}
		c.run(c.now + 3*allocator.Second)
		mate.step(Heard{Hint: Hint{Region: "us", Node: "n9", Bucket: "b", Rate: 1}})
		before := [2]int64{c.regions["us"].machine.stats.HintsPublished,
			mate.machine.stats.HintsPublished}
		c.run(c.now + 2*allocator.Second)
		for i, n := range c.nodes("us") {
			if got := n.machine.stats.HintsPublished > before[i]; got != want {
				t.Errorf("%d of 400 by each of two nodes: %s published %t", rate, n.node, got)
			}
		}
	}
}
