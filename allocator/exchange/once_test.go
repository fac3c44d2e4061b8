//go:build !race

package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// heldOnce compares each value that the machine computed once and keeps with the value as computed
// now.
func (m *Machine) heldOnce(now quantity.NodeTime) error {
	if len(m.order) != len(m.views) || !slices.IsSortedFunc(m.order,
		func(a, b *view) int { return strings.Compare(a.ID, b.ID) }) {
		return fmt.Errorf("%d buckets in order, %d in view", len(m.order), len(m.views))
	}
	for _, v := range m.order {
		if m.views[v.ID] != v || v.own != v.part(m.region) || v.frame != v.frameOf() ||
			v.rate != v.demand.Rate(v.Cell) || len(v.dealings) != len(m.peers) {
			return fmt.Errorf("bucket %s: part %+v, rate %d, %d dealings", v.ID, v.own, v.rate,
				len(v.dealings))
		}
		said := m.mates[v.ID]
		if said != nil && said != v.mates || said == nil && v.mates.rate(now) != 0 {
			return fmt.Errorf("bucket %s listens to other mates than the machine", v.ID)
		}
		if said != nil {
			if want, capped := said.nodes.rates(now); said.rate(now) != want || said.capped() != capped {
				return fmt.Errorf("bucket %s: mates ask for %d and %d, not %d and %d", v.ID, said.rate(now), said.capped(), want, capped)
			}
		}
		for i, p := range m.peers {
			d := &v.dealings[i]
			if d.peer != p || p.index != i || d.part != v.part(p.name) {
				return fmt.Errorf("peer %s is not at its place %d, or not with its part", p.name, i)
			}
			if d.voices == nil {
				continue
			}
			said, at := d.together(now)
			want, wantAt := d.nodes.together(now)
			if *said != want || at != wantAt {
				return fmt.Errorf("peer %s: %+v of %d, not %+v of %d", p.name, *said, at, want,
					wantAt)
			}
		}
	}
	return nil
}

// TestWhatIsWorkedOutOnceHolds: after every event, each value that the machine computed once for
// many plans equals the value as computed anew. The run has lies, losses, crashes, mates that come
// and go, and hints that expire.
func TestWhatIsWorkedOutOnceHolds(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		for seed := range uint64(4) {
			c := hostileCluster(t, seed, kind, 1+int64(seed)*3)
			c.mate("us")
			c.hostility(kind == algorithms.FixedWindow)
			listened := false
			for end := c.now + 15*allocator.Second; len(c.queue) > 0 && c.now < end; {
				c.run(c.queue[0].at)
				for _, name := range c.names {
					for _, n := range c.nodes(name) {
						if err := n.machine.heldOnce(c.now); err != nil {
							t.Fatalf("%s, seed %d, node %s/%s: %v", kind, seed, name, n.node, err)
						}
						listened = listened || len(n.machine.mates) > 0
					}
				}
			}
			if !listened {
				t.Errorf("%s, seed %d: no mate was heard", kind, seed)
			}
		}
	}
}

// TestANewDocumentIsLookedUpAnew: what the machine looked up in a document once, it looks up again
// in the next document, for that document's peers.
func TestANewDocumentIsLookedUpAnew(t *testing.T) {
	b, m, now := long(60 * allocator.Second)
	m.Step(now, spent(b, now, 4))
	two := *b
	two.Epoch, two.Limit, two.Entitlements = "2-test", 900, map[string]quantity.Units{"us": 300,
		"sa": 300, "ap": 300}
	m.Step(now, TenureChanged{Generation: 7, Epoch: "2-test", Peers: []string{"ap", "sa"}})
	suite.Must(t, m.heldOnce(now))
	m.Step(now, spent(&two, now, 4))
	if err := m.heldOnce(now); err != nil || m.views["w"].own.Entitlement != 300 {
		t.Errorf("%+v, %v", m.views["w"].own, err)
	}
}
