//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestHostileAnswersAreRejectedAndCounted: a peer that announces more than it can have lent, rows
// of another region, of another or a finished cell, of another document or generation credits
// nothing, and is counted by what it did.
func TestHostileAnswersAreRejectedAndCounted(t *testing.T) {
	tests := map[string]struct {
		answer func(r *Reply)
		at     int64 // after the ask, in us
		want   Rejection
	}{
		"more than it may lend": {func(r *Reply) { r.Grants[0].Lent = 381 }, 0,
			RejectedImplausible},
		"more than can be": {func(r *Reply) { r.Grants[0].Lent = algorithms.MaxUnits + 1 }, 0,
			RejectedImplausible},
		"below zero": {func(r *Reply) { r.Grants[0].Returned = -1 }, 0,
			RejectedImplausible},
		"given back, never lent": {func(r *Reply) { r.Grants[0].Returned = 5 }, 0,
			RejectedImplausible},
		"another region's": {func(r *Reply) { r.From = "ap" }, 0, RejectedRegion},
		"more grants than asks": {func(r *Reply) { r.Grants = append(r.Grants, r.Grants[0]) }, 0,
			RejectedRegion},
		"another cell":        {func(r *Reply) { r.Grants[0].Cell++ }, 0, RejectedImplausible},
		"a finished cell":     {func(*Reply) {}, 61 * allocator.Second, RejectedFinished},
		"other terms since":   {func(*Reply) {}, 0, RejectedTerms},
		"another generation":  {func(r *Reply) { r.ForGeneration-- }, 0, RejectedGeneration},
		"a fenced generation": {func(r *Reply) { r.Generation = 8 }, 0, RejectedGeneration},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, m, now := long(60 * allocator.Second)
			var store algorithms.Twin
			store.Open(quantity.StoreTime(now), algorithms.Open{Generation: 7, Region: "us",
				Epoch: epochForTests})
			guard := algorithms.Fence{Generation: 7, Epoch: epochForTests,
				Clock: quantity.StoreTime(now)}
			store.Recall(quantity.StoreTime(now), algorithms.Recall{Fence: guard,
				Target: algorithms.Target{Key: "w", Terms: b.Terms("us")}, Peer: "eu",
				PeerGeneration: 9})

			m.Step(now, spent(b, now, 300))
			now += 150_000 // a demand is known
			var call Call
			for _, c := range m.Step(now, spent(b, now, 300)).Calls {
				if c.Peer == "eu" && len(c.Message.Asks) > 0 {
					call = c
				}
			}
			if call.ID == 0 {
				t.Fatal("nothing was asked of eu")
			}
			a := call.Message.Asks[0]
			r := Reply{From: "eu", Generation: 9, ForGeneration: 7,
				Grants: []Grant{{Cell: a.Cell, Lent: 100}}}
			for range call.Message.Asks[1:] {
				r.Grants = append(r.Grants, Grant{Refusal: RefusedUnknown})
			}
			test.answer(&r)
			if test.want == RejectedTerms {
				b.Agreed++
			}
			now += quantity.NodeTime(test.at)
			guard.Clock = quantity.StoreTime(now)
			for _, c := range m.Step(now, Answered{ID: call.ID, Reply: r}).Credits {
				m.Step(now, Credited{Credit: c, Result: store.Credit(quantity.StoreTime(now),
					algorithms.Credit{Fence: guard, Target: algorithms.Target{Key: c.Bucket.ID,
						Terms: c.Bucket.Terms("us")}, Announcement: c.Announcement})})
			}
			stats := m.Stats()
			if stats.RowsRejected[test.want] == 0 || stats.Borrowed+stats.Regained > 0 {
				t.Errorf("rejected %v, borrowed %d", stats.RowsRejected, stats.Borrowed)
			}
		})
	}
}
