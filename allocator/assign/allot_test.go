//go:build !race

package assign

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// A node that may assign less than it holds gives the rest back within a report and a plan or two,
// and takes it again when it may.
func TestAllotmentIsKept(t *testing.T) {
	w := newWorld(t, 3, plans{rate: 1000, burst: 1000, envoyBurst: 500, nodes: 1, envoys: 4,
		late: second / 20, ttl: 10})
	for _, e := range w.envoys {
		e.demand = 500
	}
	n := w.nodes[0]
	rates := func() (sum quantity.Units) {
		for _, e := range w.envoys {
			sum += quantity.Units(e.rate)
		}
		return sum
	}
	held := func() quantity.Units { return w.share(w.cell()) - w.free(w.cell()) }
	w.run(30*second, func() {})
	if rates() < 900 {
		t.Fatalf("Envoys have %d a second", rates())
	}
	allot := func(most map[string]quantity.Units) { n.machine.Allot(w.nodeTime(n), most) }
	w.run(9*second, func() { allot(map[string]quantity.Units{"b": 300}) })
	if rates() > 300 || held() > 330 {
		t.Errorf("allotted 300, Envoys have %d a second and the node holds %d", rates(), held())
	}
	w.run(10*second, func() { allot(nil) })
	if rates() < 900 {
		t.Errorf("Envoys have %d a second, and nobody else needs them", rates())
	}
}
