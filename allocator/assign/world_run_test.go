//go:build !race

package assign

import (
	"flag"
	"testing"

	"github.com/quotad/quotad/quantity"
)

var seeds = flag.Int("assign.seeds", 800, "how many worlds TestNothingIsAdmittedTwice makes")

// Whatever Envoys want, and whatever is lost, cut or restarted: Envoys and callers of the store
// together admit what one bucket of the whole limit would, as long as each Envoy takes messages
// within Late.
func TestNothingIsAdmittedTwice(t *testing.T) {
	rebuilt := 0
	// In the last world a node starts anew and hears late what it held of the cell.
	for i := range *seeds + 1 {
		seed := uint64(i)
		if i == *seeds {
			seed = 2452
		}
		w := newWorld(t, seed, plans{})
		p := plans{rate: 50 + quantity.Units(w.rand.IntN(2000)), nodes: 1 + w.rand.IntN(3),
			envoys: 1 + w.rand.IntN(12), late: 1 + w.rand.Int64N(Late-step), ttl: 5 + w.rand.Int64N(11),
			losses: 0.1 * w.rand.Float64()}
		p.burst = 20 + p.rate/quantity.Units(1+w.rand.IntN(20))*quantity.Units(1+w.rand.IntN(4))
		p.greedy, p.eager = w.rand.IntN(2) == 0, 0.2+3*w.rand.Float64()
		p.envoyBurst = 1 + quantity.Units(w.rand.IntN(int(p.burst-1)))
		p.direct = float64(p.rate) * w.rand.Float64()
		length := int64(60 * second)
		if p.counted = seed%3 == 2; p.counted {
			length *= 3
		}
		if p.slow = w.rand.IntN(2) == 0; p.slow {
			p.late = Late - step
		}
		if seed%2 == 1 {
			p.unsent = 0.1
		}
		w = newWorld(t, seed, p)
		w.run(length, func() {
			w.trouble()
			if !p.counted && w.out() > p.envoyBurst {
				t.Fatalf("seed %d, %+v: Envoys may hold %d tokens", seed, p, w.out())
			}
		})
		if w.least < -1e-6 {
			t.Errorf("seed %d, %+v: %.2f admitted above the limit", seed, p, -w.least)
		}
		for _, e := range w.envoys {
			rebuilt += e.rebuilt
		}
	}
	if rebuilt < *seeds*10 {
		t.Errorf("%d assignments were taken in %d worlds: too few to say anything", rebuilt, *seeds)
	}
}

// TestALateReportProvesNoMore: nodes are starved, so that they read reports up to 30 seconds after they
// were sent, or are stopped altogether. A report shows what was admitted until it was sent, and not
// until it is read. The first of a stream is on time: no other shows what it lacks.
func TestALateReportProvesNoMore(t *testing.T) {
	for seed := range uint64(*seeds) {
		w := newWorld(t, seed, plans{})
		p := plans{rate: 50 + quantity.Units(w.rand.IntN(2000)), nodes: 1 + w.rand.IntN(3),
			envoys: 1 + w.rand.IntN(8), late: 1 + w.rand.Int64N(Late-step), ttl: 5 + w.rand.Int64N(11),
			greedy: w.rand.IntN(2) == 0, eager: 0.5 + 3*w.rand.Float64(), starved: 30 * second}
		p.burst = 20 + p.rate/quantity.Units(1+w.rand.IntN(20))
		p.envoyBurst = 1 + quantity.Units(w.rand.IntN(int(p.burst-1)))
		length := int64(90 * second)
		if p.counted = seed%3 > 0; p.counted {
			length *= 2
		}
		w = newWorld(t, seed, p)
		w.run(length, w.trouble)
		if w.least < -1e-6 {
			t.Errorf("seed %d, %+v: %.2f admitted above the limit", seed, p, -w.least)
		}
	}
}

// trouble does something bad now and then.
func (w *world) trouble() {
	e := w.envoys[w.rand.IntN(len(w.envoys))]
	switch n := w.nodes[w.rand.IntN(len(w.nodes))]; w.rand.IntN(100) {
	case 0, 4:
		e.demand = w.rand.Float64() * 2 * w.plans.eager * float64(w.plans.rate) /
			float64(w.plans.envoys)
	case 1:
		w.cut(e)
	case 2: // the node is started anew
		if !n.dead {
			n.dead = true
			for i := range w.nodes {
				if w.nodes[i] == n {
					w.nodes[i] = w.newNode(n.name)
				}
			}
			for _, e := range w.envoys {
				if e.node == n {
					e.node = nil
				}
			}
		}
	case 6: // the node hears no report for a while, or does nothing
		if w.plans.starved > 0 && w.now > max(n.deaf, n.stopped) {
			until := w.now + w.rand.Int64N(w.plans.starved)
			if w.rand.IntN(2) == 0 {
				n.deaf = until
			} else {
				n.stopped = until
			}
		}
	case 5: // others want some, or none
		most := quantity.Units(w.rand.Int64N(int64(w.plans.rate) + 1))
		n.machine.Allot(w.nodeTime(n), map[string]quantity.Units{[]string{"b", "c"}[w.rand.IntN(2)]: most})
	case 3: // rights of the next cell move away or come, as far as they are free
		c := w.cell() + 1
		move := quantity.Units(w.rand.Int64N(int64(w.entitlement()) + 1))
		if w.rand.IntN(2) == 0 {
			move = -min(move, max(w.free(c), 0))
		}
		w.rights[c] = w.share(c) + move
	}
}

// Envoys get what they want, as far as the limit allows.
func TestDemandIsServed(t *testing.T) {
	for _, counted := range []bool{false, true} {
		for load, least := range map[float64]float64{0.3: 0.99, 0.9: 0.97, 1.5: 0.93} {
			w := newWorld(t, 2, plans{rate: 1000, burst: 1000, envoyBurst: 500, nodes: 1, envoys: 12,
				late: second / 20, ttl: 10, counted: counted})
			sum := 0.0
			for i, e := range w.envoys {
				e.demand = float64(1 + i%4*3)
				sum += e.demand
			}
			for _, e := range w.envoys {
				e.demand *= load * 1000 / sum
			}
			// From the beginning of a window on.
			w.run(60*second+int64(w.cells().Opens(w.cell()+1).Sub(quantity.StoreTime(w.now))), func() {})
			w.admitted, w.offered = 0, 0
			w.run(120*second, func() {})
			most := min(w.offered, 120*1000)
			t.Logf("load %.1f, a window %v: %.1f %% of what one bucket admits", load, counted,
				100*w.admitted/most)
			if w.admitted < least*most {
				t.Errorf("load %.1f: %.0f of %.0f admitted", load, w.admitted, most)
			}
			if w.least < 0 {
				t.Errorf("load %.1f: %.2f above the limit", load, -w.least)
			}
		}
	}
}
