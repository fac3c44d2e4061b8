//go:build !race

package algorithms_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

func (h *history) recall(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Recall{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key), ExistsUntil: h.known(t, key)}, Peer: h.peer(t),
		PeerGeneration: rapid.SampledFrom([]uint64{3, 3, 3, 2, 4}).Draw(t, "peer generation")}
	got := must[algorithms.Recalled](t)(c.Parse(h.eval(t, algorithms.RecallScript, c.Args(), key)))
	same(t, "recall", c, got, h.twin.Recall(h.time(got.Now), c))
}

func (h *history) restore(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Restore{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key)}, LostAt: h.lostAt[key],
		Known: algorithms.Known{Cap: h.units(t, "cap"),
			Use: algorithms.Use{Cell: h.cell(t, key), Units: h.units(t, "used"),
				At: h.now.Add(-rapid.Int64Range(-10, 2*window).Draw(t, "ago"))}}}
	if rapid.Bool().Draw(t, "not all told") {
		c.Most = 1 + h.units(t, "most")
	}
	if h.now.Sub(c.LostAt) > algorithms.KeySlack ||
		c.Terms.Kind.Bucket() && h.now.Sub(h.touched[key]) > algorithms.KeySlack {
		return // the twin has forgotten the bucket, and a Redis not yet
	}
	for _, peer := range []string{"eu-west", "ap-south"} {
		if rapid.Bool().Draw(t, "known") {
			c.KnownPeers = append(c.KnownPeers, peer)
		} else {
			c.UnknownPeers = append(c.UnknownPeers, peer)
		}
		for range rapid.IntRange(0, 2).Draw(t, "rows") {
			row := algorithms.RememberedRow{Peer: peer, Lent: h.units(t, "lent"),
				Returned: h.units(t, "returned")}
			row.Cell = h.cell(t, key)
			c.Rows = append(c.Rows, row)
		}
	}
	got := must[algorithms.Restored](t)(c.Parse(h.eval(t, algorithms.RestoreScript, c.Args(), key)))
	same(t, "restore", c, got, h.twin.Restore(h.time(got.Now), c))
	h.exists(key, got.State)
}

func (h *history) book(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Book{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key)}, Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"),
		Window: h.buckets[key].Windows().At(h.now) + quantity.Cell(rapid.SampledFrom([]int64{0, 0,
			0, -1, -2, 1}).Draw(t, "window")), Units: h.units(t, "booked")}
	if c.Terms.Kind.Bucket() && c.Terms.Burst == 0 {
		c.Units = 0 // a region that is entitled to nothing admits nothing without its store
	}
	got := must[algorithms.Booked](t)(c.Parse(h.eval(t, algorithms.BookScript, c.Args(), key)))
	same(t, "book", c, got, h.twin.Book(h.time(got.Now), c))
	h.lost(key, got.Status, got.LostAt)
}

func (h *history) delete(t *rapid.T) {
	key := h.key(t)
	if err := h.client.Del(context.Background(), key).Err(); err != nil {
		t.Fatalf("delete: %v", err)
	}
	h.twin.Delete(key)
	delete(h.told, key)
}

// TestRecallTellsWhatCameBack: a region that lent to a peer and got some of it back tells both, by
// the scripts as by the twin. Random histories seldom come to it.
func TestRecallTellsWhatCameBack(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			l := newLua(t, start(t))
			suite.Check(t, func(t *rapid.T) {
				h := begin(t, l, false, algorithms.Kinds...)
				of := algorithms.Target{Key: "a", Terms: h.buckets["a"]}
				cell, fence := of.Terms.CellAt(h.now), h.guard
				lend := algorithms.Lend{Fence: fence, Target: of,
					Debit: algorithms.Debit{Peer: "eu-west", Cell: cell, Lent: 5,
						Cap: 10}}
				given := must[algorithms.Given](t)(lend.Parse(h.eval(t, algorithms.LendScript,
					lend.Args(), of.Key)))
				same(t, "lend", lend, given, h.twin.Lend(h.time(given.Now), lend))
				credit := algorithms.Credit{Fence: fence, Target: of,
					Announcement: algorithms.Announcement{Peer: "eu-west", Cell: cell,
						PeerGeneration: 3, Returned: given.Row.Lent, Most: 10}}
				got := must[algorithms.Credited](t)(credit.Parse(h.eval(t, algorithms.CreditScript,
					credit.Args(), of.Key)))
				same(t, "credit", credit, got, h.twin.Credit(h.time(got.Now), credit))
				recall := algorithms.Recall{Fence: fence, Target: of, Peer: "eu-west",
					PeerGeneration: 3}
				told := must[algorithms.Recalled](t)(recall.Parse(h.eval(t,
					algorithms.RecallScript, recall.Args(), of.Key)))
				same(t, "recall", recall, told, h.twin.Recall(h.time(told.Now), recall))
				if given.Row.Lent > 0 && (len(told.Rows) != 1 ||
					told.Rows[0].Returned != given.Row.Lent) {
					t.Fatalf("%s: %d came back, and told is %+v", of.Terms.Kind, given.Row.Lent,
						told.Rows)
				}
			})
		})
	}
}
