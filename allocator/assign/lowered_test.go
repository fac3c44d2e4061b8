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
	if w.admitted < 0.95*always.admitted {
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
