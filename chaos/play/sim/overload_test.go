//go:build !race

package sim

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestBusySeedsHold: no seed breaks an invariant whose stores take time and are asked for more than
// they can decide, and the draw has nodes refuse what they have no time for.
func TestBusySeedsHold(t *testing.T) {
	tally := holds(t, Hunt{Config: Config{For: 30_000_000, Busy: true}, Seeds: suite.Short[uint64](10, 40)})
	if c := tally.Counts; c.Refused == 0 || c.Refused > c.Requests/2 {
		t.Errorf("of %d requests %d are refused for want of time: the draw shows nothing", c.Requests, c.Refused)
	}
	holds(t, Hunt{Config: Config{For: 30_000_000, Busy: true, Spanning: true}, Seeds: suite.Short[uint64](5, 40)})
}

// TestServers: the busy draw has stores of several servers, between which the buckets of a plan are divided,
// and servers that are silent.
func TestServers(t *testing.T) {
	several, apart, silent := int64(0), int64(0), int64(0)
	for seed := range uint64(50) {
		p := Draw(seed, Config{For: 30_000_000, Busy: true})
		w, err := newWorld(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		on := map[int]bool{}
		for _, b := range w.buckets() {
			on[w.regions[0].serverOf(b)] = true
		}
		several += oneIf(len(p.Regions[0].Servers) > 1)
		apart += oneIf(len(on) > 1)
		silent += oneIf(slices.ContainsFunc(p.Acts, func(a Act) bool { return a.Do == Silence }))
		w.close()
	}
	if several < 15 || several > 35 || apart < 5 || silent < 10 {
		t.Errorf("of 50 plans %d have stores of several servers, %d use more than one, and in %d some are silent",
			several, apart, silent)
	}
}

// TestSilence: while a server is silent its requests are decided without the store, and those of the other
// with it.
func TestSilence(t *testing.T) {
	p := &Plan{Regions: []RegionPlan{{Name: "r0", Weight: 1, Nodes: 1, Servers: []ServerPlan{{50, 20}, {50, 20}}},
		{Name: "r1", Weight: 1, Nodes: 1, Servers: []ServerPlan{{50, 20}}}}, OneWay: [][]int64{{0, 1000}, {1000, 0}},
		Document: "regions:\n  r0: {weight: 1}\n  r1: {weight: 1}\nlimits:\n  - {name: l0, domain: api0, key: [account], algorithm: fixed_window, limit: 1000, window: 60s}\n",
		Shards:   2, End: 8_000_000, Heal: 8_000_000}
	for key := range 4 {
		p.Keys = append(p.Keys, fmt.Sprintf("k%d", key))
	}
	w, err := newWorld(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.counts.Deeds = map[Deed]int64{}
	w.at(1_000_000, func() { w.act(Act{Do: Silence, For: 3_000_000}) })
	told := map[int]map[admit.Reason]bool{0: {}, 1: {}}
	for at := int64(2_000_000); at < 4_000_000; at += 100_000 {
		for key, b := range w.limits[0].buckets {
			on := w.regions[0].serverOf(b)
			w.at(at, func() {
				w.ask(w.regions[0].nodes[0], &request{q: w.question("api0", key),
					done: func(d admit.Decision) { told[on][d.Reason] = true }})
			})
		}
	}
	w.run(p.End)
	want := map[int]map[admit.Reason]bool{0: {admit.StoreFailureLocal: true}, 1: {admit.WithinLimit: true}}
	if w.broken != nil || !reflect.DeepEqual(told, want) {
		t.Errorf("answers by server: %v, %v", told, w.broken)
	}
}
