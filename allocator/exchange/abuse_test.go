//go:build !race

package exchange

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// long returns a bucket of 1000 units in a long window, and a machine of us that has heard both
// peers.
func long(window int64) (b *Bucket, m *Machine, now quantity.NodeTime) {
	b = &Bucket{ID: "w", Epoch: epochForTests, Kind: algorithms.FixedWindow, Limit: 1000,
		Window: window, Cell: window, Tick: 1,
		Entitlements: map[string]quantity.Units{"us": 400, "eu": 400, "ap": 200}, Lending: 950_000,
		Borrowing: -1}
	m, now = New("us", "n1", Options{}), allocator.Second
	m.Step(now, TenureChanged{Generation: 7, Epoch: epochForTests, Peers: []string{"eu", "ap"}})
	m.denyAll(now, m.Step(now, Tick{Jitter: allocator.PPM}))
	return b, m, now
}

// denyAll answers all calls of a step with nothing.
func (m *Machine) denyAll(now quantity.NodeTime, out Effects) {
	for _, c := range out.Calls {
		r := Reply{From: c.Peer, Generation: 9, ForGeneration: 7,
			Grants: make([]Grant, len(c.Message.Asks))}
		for i, a := range c.Message.Asks {
			r.Grants[i].Cell = a.Cell
		}
		m.Step(now, Answered{ID: c.ID, Reply: r})
	}
}

// spent returns the report of us when it has used its entitlement and denies the given units.
func spent(b *Bucket, now quantity.NodeTime, denied quantity.Units) Observed {
	f := b.Entitlements["us"]
	return Observed{Bucket: b, Requests: allocator.Requests{Denied: denied}, Now: quantity.StoreTime(now),
		State: algorithms.State{Entitlement: f, Share: f, NextShare: f, Used: f}}
}

// TestAStormOfDemandKeepsNothingNegative: a lender that has spent its part sees the largest demand
// that can be expressed. The sum it keeps must not overflow: below zero it would lend what it has
// spent.
func TestAStormOfDemandKeepsNothingNegative(t *testing.T) {
	for _, window := range []int64{allocator.Second, 7 * 86400 * allocator.Second,
		366 * 86400 * allocator.Second} {
		b, m, now := long(window)
		m.Step(now, Heard{Hint: Hint{Region: "ap", Bucket: "w", Total: 1 << 51, Rate: 1 << 51}})
		for range 80 {
			now += Interval
			m.denyAll(now, m.Step(now, spent(b, now, algorithms.MaxUnits)))
			m.Step(now, Heard{Hint: Hint{Region: "ap", Bucket: "w", Total: 1 << 51, Rate: 1 << 51}})
			m.denyAll(now, m.Step(now, Tick{Jitter: allocator.PPM}))
		}
		out := m.Step(now, Asked{ID: 5, Message: Message{From: "eu", Generation: 9,
			Asks: []Ask{{Bucket: "w", Cell: algorithms.CellAt(quantity.StoreTime(now), window),
				Lent: 380}}}, Buckets: []*Bucket{b}})
		if l := out.Lend[0]; l.Kept < 0 || l.KeptBurst < 0 || l.Cap != 380 {
			t.Errorf("window of %d s: %+v", window/allocator.Second, l)
		}
	}
}

// TestARemovedPeerHoldsNothingUp: asks to a region that left the document no longer count as under
// way.
func TestARemovedPeerHoldsNothingUp(t *testing.T) {
	b, m, now := long(30 * 86400 * allocator.Second)
	m.Step(now, spent(b, now, 400))
	now += 150_000 // a demand is known
	out := m.Step(now, spent(b, now, 400))
	if len(out.Calls) == 0 {
		t.Fatal("nothing was asked for")
	}
	two := *b
	two.Epoch, two.Entitlements = "2-test", map[string]quantity.Units{"us": 500, "eu": 500}
	m.Step(now, TenureChanged{Generation: 7, Epoch: "2-test", Peers: []string{"eu"}})
	m.denyAll(now, out)
	now += 2 * allocator.Second
	out = m.Step(now, spent(&two, now, 400))
	asked := false
	for _, c := range out.Calls {
		asked = asked || c.Peer == "eu" && len(c.Message.Asks) > 0
	}
	if pending := m.views["w"].pending(0).units; !asked || pending > two.Limit {
		t.Errorf("asked %t, %d pending", asked, pending)
	}
}

// TestManyBucketsInNeedAskTogether: decisions on thousands of buckets lead to few calls, and no
// bucket waits.
func TestManyBucketsInNeedAskTogether(t *testing.T) {
	const buckets = 5000
	_, m, now := long(60 * allocator.Second)
	var all Report
	for i := range buckets {
		b := &Bucket{ID: fmt.Sprint(i), Epoch: epochForTests, Kind: algorithms.FixedWindow,
			Limit: 800, Window: 60 * allocator.Second,
			Cell: 60 * allocator.Second, Tick: 1, Entitlements: map[string]quantity.Units{"us": 400,
				"eu": 400}, Lending: 950_000, Borrowing: -1}
		all = append(all, spent(b, now, 400))
	}
	asked := map[string]bool{}
	calls := 0
	m.Step(now, all)
	now += 150_000 // a demand is known
	for _, c := range m.Step(now, all).Calls {
		calls++
		for _, a := range c.Message.Asks {
			asked[a.Bucket] = true
		}
	}
	if len(asked) != buckets || calls > buckets/MaxAsks+2 {
		t.Errorf("%d of %d buckets asked for, in %d calls", len(asked), buckets, calls)
	}
}
