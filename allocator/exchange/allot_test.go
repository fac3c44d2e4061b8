//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// What Envoys admit and deny comes in as a flow. It counts as demand as long as it is told.
func TestFlowIsDemand(t *testing.T) {
	m, b := assigning(1)
	now := quantity.NodeTime(allocator.Second)
	tick := func(seconds int) (last Effects) {
		for range 5 * seconds {
			now = now.Add(allocator.Interval)
			last = m.Step(now, Tick{Jitter: allocator.PPM})
		}
		return last
	}
	tell := func(admitted, denied quantity.MilliRate) {
		m.Step(now, Report{{Bucket: b, Flow: Flow{Told: true, Admitted: admitted, Denied: denied}}})
	}
	m.Step(now, Report{{Bucket: b, State: state(b, quantity.StoreTime(now), 0), Now: quantity.StoreTime(now)}})
	for range 3 {
		tell(100_300, 50_000)
		tick(1)
	}
	if rate := m.views[b.ID].rate; rate < 145_000 || rate > 155_000 {
		t.Errorf("a demand of %d thousandths a second, want 150,300", rate)
	}
	tick(flowLife/allocator.Second + 6)
	if v := m.views[b.ID]; v != nil && v.rate > 0 {
		t.Errorf("a demand of %d, and nobody tells any", v.rate)
	}
}

// A node is allotted its part where all together want more than there is, else it is free.
func TestAllotment(t *testing.T) {
	for name, c := range map[string]struct {
		own, mate, peer quantity.MilliRate // units a second
		share           quantity.Units     // that the region has; 0: its entitlement
		want            quantity.Units     // 0: not bound
	}{
		"alone":                            {own: 900, want: 0},
		"more than there is":               {own: 1500, want: 1000},
		"a peer wants its own":             {own: 900, peer: 500, want: 500},
		"a peer wants more than its own":   {own: 900, peer: 900, want: 500},
		"a peer wants little":              {own: 900, peer: 50, want: 0},
		"a mate wants as much":             {own: 900, mate: 900, peer: 500, want: assignable / 2},
		"a mate wants little":              {own: 900, mate: 100, peer: 500, want: assignable - 100},
		"a mate, and a peer is silent":     {own: 900, mate: 900, want: assignable / 2},
		"a little, and a peer is silent":   {own: 900, mate: 20, want: assignable - 20},
		"a mate, and a peer lends":         {own: 900, mate: 900, share: 900, want: (assignable + 400) / 2},
		"a mate, and a peer lends enough":  {own: 500, mate: 300, share: 900, want: 0},
		"a mate, and most is lent":         {own: 900, mate: 900, share: 107, want: 50},
		"less than others and all wanted":  {own: 100, mate: 900, peer: 900, want: 0},
		"all want less than their regions": {own: 200, mate: 200, peer: 500, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, b := assigning(2)
			now := quantity.NodeTime(allocator.Second)
			seen := state(b, quantity.StoreTime(now), 0)
			if c.share > 0 {
				seen.Share = c.share
			}
			m.Step(now, Report{{Bucket: b, State: seen, Now: quantity.StoreTime(now)}})
			var out Effects
			for range 10 {
				m.Step(now, Report{{Bucket: b, Flow: Flow{Told: true, Admitted: 1000 * c.own}}})
				cell := b.Cells().At(quantity.StoreTime(now))
				if c.mate > 0 {
					m.Step(now, Heard{Hint{Region: m.region, Node: "mate", Bucket: b.ID, Cell: cell,
						Rate: 1000 * c.mate}})
				}
				if c.peer > 0 {
					m.Step(now, Heard{Hint{Region: "eu", Node: "n1", Bucket: b.ID, Cell: cell,
						Rate: 1000 * c.peer}})
				}
				now = now.Add(allocator.Interval)
				out = m.Step(now, Tick{Jitter: allocator.PPM})
			}
			got := quantity.Units(0)
			if len(out.Allotments) == 1 {
				got = out.Allotments[0].Rights
			}
			if got != c.want {
				t.Errorf("allotted %v, want %d", out.Allotments, c.want)
			}
		})
	}
}

// assignable is what nodes of us divide of its entitlement: the store keeps some.
const assignable = 500 - 500/64

// assigning returns the machine of one of so many nodes of us, and a bucket of 1,000 a second that
// us and eu halve and Envoys are assigned parts of.
func assigning(nodes int) (*Machine, *Bucket) {
	m := New("us", "n1", Options{Nodes: nodes})
	b := &Bucket{ID: "b", Epoch: "e", Kind: algorithms.TokenBucket, Limit: 1000,
		Window: allocator.Second, Cell: 10 * allocator.Second, Tick: 1,
		Entitlements: map[string]quantity.Units{"us": 500, "eu": 500},
		Bursts:       map[string]quantity.Units{"us": 500, "eu": 500},
		Lending:      allocator.PPM, Borrowing: -1, Assigned: true}
	m.Step(1, TenureChanged{Generation: 1, Epoch: "e", Peers: []string{"eu"}})
	return m, b
}
