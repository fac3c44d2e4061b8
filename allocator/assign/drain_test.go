//go:build !race

package assign

import "testing"

// When a node ends, its Envoys keep what they have for long enough to open streams to other nodes,
// and not for much longer. Nothing new is assigned.
func TestDrain(t *testing.T) {
	w := newWorld(t, 3, plans{rate: 1000, burst: 1000, envoyBurst: 400, nodes: 1, envoys: 4,
		late: 1, ttl: 15, eager: 0.5})
	w.run(27*second, func() {})
	n := w.nodes[0]
	messages := func() (sum int) {
		for _, all := range n.told {
			sum += len(all)
		}
		return sum
	}
	before := messages()
	n.machine.Drain(w.nodeTime(n))
	w.run(3*step, func() {})
	for _, e := range w.envoys {
		if left := e.expires - w.now; left > drainTTL*second || left < ReportEvery {
			t.Errorf("an Envoy has what it has for %d us", left)
		}
	}
	if sent := messages() - before; sent != len(w.envoys) {
		t.Errorf("%d messages to %d Envoys", sent, len(w.envoys))
	}
	w.run(8*second, func() {})
	for _, e := range w.envoys {
		if e.expires > w.now {
			t.Error("an Envoy still has an assignment")
		}
	}
}
