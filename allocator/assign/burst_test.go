//go:build !race

package assign

import "testing"

// TestTooFewTokensAreNotForEver: an Envoy's assignment had to be sent while there was hardly a token to pay for its
// burst. It loses each request that comes together with another. Once there are tokens again it gets its part,
// although its rate stays.
func TestTooFewTokensAreNotForEver(t *testing.T) {
	w := newWorld(t, 3, plans{rate: 10_000, burst: 10_000, envoyBurst: 4000, nodes: 1, envoys: 4, late: second / 20, ttl: 15})
	for _, e := range w.envoys {
		e.demand = 2000
	}
	w.run(60*second, func() {})
	n := w.nodes[0]
	p := n.machine.order[0]
	for _, s := range p.shares {
		if last := s.last(w.nodeTime(n)); last == nil || last.burst < 100 {
			t.Fatalf("an Envoy has %+v", last)
		}
	}
	poor := p.shares[2]
	poor.grants[len(poor.grants)-1].burst = 1
	w.run(20*second, func() {})
	if last := poor.last(w.nodeTime(n)); last == nil || last.burst < 100 {
		t.Errorf("it still has %+v, where four have some 2,000 tokens together", last)
	}
}
