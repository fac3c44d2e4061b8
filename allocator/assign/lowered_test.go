//go:build !race

package assign

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// settles is policy.AssignSettles.
const settles = 30 * second

// out returns the tokens that Envoys may hold, and what nodes hold for them.
func (w *world) out() (sum quantity.Units) {
	for _, n := range w.nodes {
		if p := n.machine.pools["b"]; p != nil {
			sum += p.purse.tokens
		}
	}
	for _, e := range w.envoys {
		if w.now < e.expires {
			sum += e.burst
		}
	}
	return sum
}

// lower has a newer document let Envoys hold fewer tokens. The store's bucket grows by them when
// the document counts alone.
func (w *world) lower(to quantity.Units) {
	w.unsettled = w.plans.envoyBurst - to
	w.plans.envoyBurst = to
}

// Envoys that want the same all the time would keep their assignments for ever. Where they may hold
// fewer tokens, they have no more in time, and then get as much as if it had always been so.
func TestEnvoysMayHoldFewerTokens(t *testing.T) {
	const most, fewer = 400, 40
	steady := func(envoyBurst quantity.Units) *world {
		w := newWorld(t, 3, plans{rate: 1000, burst: 1000, envoyBurst: envoyBurst, nodes: 1,
			envoys: 4, late: second / 20, ttl: 15})
		for _, e := range w.envoys {
			e.demand = 1000
		}
		w.run(60*second, func() {})
		return w
	}
	w, always := steady(most), steady(fewer)
	if burst := w.nodes[0].machine.order[0].burstOut(); burst <= fewer {
		t.Fatalf("Envoys hold %d tokens: nothing is to be taken back", burst)
	}
	w.lower(fewer)
	w.run(settles, func() {})
	w.unsettled, w.admitted, always.admitted = 0, 0, 0
	always.run(60*second, func() {})
	w.run(60*second, func() {
		if w.out() > fewer {
			t.Fatalf("%d tokens out", w.out())
		}
	})
	t.Logf("%.0f admitted in a minute, %.0f if it was always so", w.admitted, always.admitted)
	if w.admitted < 0.92*always.admitted {
		t.Errorf("%.0f admitted in a minute, %.0f if it was always so", w.admitted, always.admitted)
	}
}

// Whatever is lost or cut when Envoys may hold fewer tokens, nothing is admitted above the limit.
func TestNothingIsAdmittedTwiceWhenEnvoysMayHoldFewer(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, seed, plans{})
		p := plans{rate: 50 + quantity.Units(w.rand.IntN(2000)), nodes: 1 + w.rand.IntN(3),
			envoys: 1 + w.rand.IntN(12), late: 1 + w.rand.Int64N(Late-step),
			ttl: 6 + w.rand.Int64N(10), losses: 0.1 * w.rand.Float64(),
			greedy: w.rand.IntN(2) == 0, eager: 0.2 + 3*w.rand.Float64()}
		p.burst = p.rate
		p.envoyBurst = 2 + quantity.Units(w.rand.IntN(int(p.burst-2)))
		w = newWorld(t, seed, p)
		w.run(30*second, func() { w.cuts() })
		w.lower(1 + quantity.Units(w.rand.IntN(int(p.envoyBurst-1))))
		w.run(settles, func() { w.cuts() })
		w.unsettled = 0
		w.run(30*second, func() {
			w.cuts()
			if w.out() > w.plans.envoyBurst {
				t.Fatalf("seed %d, %+v: %d tokens out", seed, w.plans, w.out())
			}
		})
		if w.least < -1e-6 {
			t.Errorf("seed %d, %+v: %.2f admitted above the limit", seed, w.plans, -w.least)
		}
	}
}

// cuts ends the stream of an Envoy now and then.
func (w *world) cuts() {
	if w.rand.IntN(100) == 0 {
		w.cut(w.envoys[w.rand.IntN(len(w.envoys))])
	}
}

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
