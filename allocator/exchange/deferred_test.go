//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestEarlyCreditsAreHeldBack: the clock of us is 300 ms behind that of eu, and a message takes 40
// ms. What eu lends within a cell, us credits when its own clock reaches the time of eu's, not
// before. It does not ask again, because eu would be ahead again.
func TestEarlyCreditsAreHeldBack(t *testing.T) {
	const second, ahead = allocator.Second, 300_000
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog, algorithms.TokenBucket, algorithms.LeakyBucket} {
		t.Run(string(kind), func(t *testing.T) {
			c := newClusterOf(t, 1, kind, 10*second, 500, 500)
			c.regions["eu"].offset = ahead
			us := c.regions["us"]
			c.run(quantity.NodeTime((int64(c.now)/c.bucket.Cell+2)*c.bucket.Cell + 100_000))
			begun, cell := c.now, quantity.Cell(int64(c.now)/c.bucket.Cell)
			came := func() quantity.Units {
				if v := us.machine.views["b"]; v != nil {
					row := v.dealing("eu").at(cell).row
					return row.Borrowed + row.BurstBorrowed
				}
				return 0
			}
			for ; c.now < begun+second && came() == 0; c.run(c.now + 1000) {
				rush(us)
			}
			if took := c.now.Sub(begun); came() == 0 || took < ahead ||
				took > ahead+2*c.net.delay+Interval {
				t.Errorf("%d units after %d us", came(), took)
			}
			if n := us.machine.Stats().RowsRejected; n != [rejections]int64{} {
				t.Errorf("rejected %v", n)
			}
		})
	}
}

// TestWhatIsHeldBackIsBounded: a peer cannot fill a node's memory with credits for a time that
// never comes. A credit that was not kept is asked for again.
func TestWhatIsHeldBackIsBounded(t *testing.T) {
	b, m, now := long(60 * allocator.Second)
	b.Kind = algorithms.SlidingWindowCounter
	m.Step(now, spent(b, now, 300))
	early := func(at quantity.StoreTime) Effects {
		c := Credit{Bucket: b, Gain: 5, Announcement: algorithms.Announcement{Peer: "eu", Cell: 0, At: at}}
		return m.Step(now, Credited{Credit: c,
			Result: algorithms.Credited{Head: algorithms.Head{Status: algorithms.StatusEarly,
				Now: quantity.StoreTime(now)}}})
	}
	early(60 * allocator.Second) // the cell's end
	if len(m.deferredCredits) > 0 {
		t.Error("a credit is held until a time at which its cell is over")
	}
	for range MaxDeferred + 10 {
		early(quantity.StoreTime(now + 50_000))
	}
	if len(m.deferredCredits) != MaxDeferred {
		t.Errorf("%d credits are held", len(m.deferredCredits))
	}
	if out := m.Step(now+49_999, Tick{Jitter: allocator.PPM}); len(out.Credits) > 0 {
		t.Error("a credit came too early once more")
	}
	if out := m.Step(now+50_000, Tick{Jitter: allocator.PPM}); len(out.Credits) != MaxDeferred ||
		len(m.deferredCredits) > 0 {
		t.Errorf("%d credits came in time, %d are left", len(out.Credits), len(m.deferredCredits))
	}
	early(quantity.StoreTime(now + 50_000))
	m.Step(now, TenureChanged{Generation: 8, Epoch: epochForTests, Peers: []string{"eu", "ap"}})
	if len(m.deferredCredits) > 0 {
		t.Error("a credit for a store that is no more is held")
	}
}

// TestOthersAreAskedWhileACreditIsHeldBack: what eu lent by a clock 3 s ahead does not count as
// under way, so other peers are asked for it. eu itself is not asked until its time has come,
// except where use fades.
func TestOthersAreAskedWhileACreditIsHeldBack(t *testing.T) {
	for kind, again := range map[algorithms.Kind]bool{algorithms.TokenBucket: false,
		algorithms.SlidingWindowLog: true} {
		b, m, now := long(60 * allocator.Second)
		b.Kind = kind
		m.Step(now, spent(b, now, 300))
		v := m.views[b.ID]
		pos := v.dealing("eu").at(0)
		pos.pending = gain{units: 200, burst: 20}
		m.Step(now, Credited{Credit: Credit{Bucket: b, Gain: 200, GainBurst: 20,
			Announcement: algorithms.Announcement{Peer: "eu",
				At: quantity.StoreTime(now + 3*allocator.Second)}},
			Result: algorithms.Credited{Head: algorithms.Head{Status: algorithms.StatusEarly,
				Now: quantity.StoreTime(now)}}})
		if p := v.pending(0); p.units > 0 || p.burst > 0 {
			t.Errorf("%s: %d units and %d tokens count as under way", kind, p.units, p.burst)
		}
		if refused := pos.refusedUntil > now && pos.burstRefusedUntil > now; refused == again {
			t.Errorf("%s: eu is asked meanwhile: %t, want %t", kind, !refused, again)
		}
		if out := m.Step(now+3*allocator.Second,
			Tick{Jitter: allocator.PPM}); len(out.Credits) != 1 || out.Credits[0].At == 0 {
			t.Errorf("%s: %+v when its time has come", kind, out.Credits)
		}
	}
}

// TestAnAnnouncedRowCountsOnce: while the store is being credited with 100 units, another answer
// that announces the same 100 brings nothing. If the store does not credit them, or says OK and
// takes none yet, a later answer brings them again.
func TestAnAnnouncedRowCountsOnce(t *testing.T) {
	b, m, now := long(60 * allocator.Second)
	m.Step(now, spent(b, now, 300))
	answer := func() []Credit {
		m.lastCall++
		id, p := m.lastCall, m.peer("eu")
		p.underway++
		m.calls[id] = &call{peer: "eu", to: p, sent: now, asks: []Ask{{Bucket: b.ID, Lent: 100}},
			gain: make([]gain, 1)}
		return m.Step(now, Answered{ID: id, Reply: Reply{From: "eu", Generation: 9,
			ForGeneration: 7,
			Grants:        []Grant{{Lent: 100}}}}).Credits
	}
	first := answer()
	if len(first) != 1 || first[0].Gain != 100 {
		t.Fatalf("credits %v", first)
	}
	if again := answer(); len(again) > 0 {
		t.Errorf("announced again: %v", again)
	}
	for _, result := range []algorithms.Credited{{Head: algorithms.Head{Status: algorithms.StatusUnknown}}, {Head: algorithms.Head{Status: algorithms.StatusOK, Now: quantity.StoreTime(now)}, Row: algorithms.Row{Borrowed: 40}}} {
		m.Step(now, Credited{Credit: first[0], Result: result})
		if again := answer(); len(again) != 1 || again[0].Gain != 100-result.Row.Borrowed {
			t.Errorf("announced after the store said %s: %v", result.Status, again)
		}
	}
}
