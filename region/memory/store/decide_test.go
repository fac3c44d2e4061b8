package store

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// TestDecidePipeline: the calls of one round trip are decided in order, and so are the costs of a
// call.
func TestDecidePipeline(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		calls := []algorithms.Decide{charge("a", 10, 1, 2), charge("b", 10, 7),
			charge("a", 10, 8, 3), charge("a", 10, 4), charge("b", 10, 4, 3)}
		want := []struct {
			used  quantity.Units
			admit []bool
		}{{3, []bool{true, true}}, {7, []bool{true}}, {6, []bool{false, true}}, {10, []bool{true}},
			{10, []bool{false, true}}}
		for i, r := range s.Decide(t.Context(), calls) {
			d := must(t, r)
			if d.Buckets[0].Used != want[i].used {
				t.Errorf("call %d: used %d, want %d", i, d.Buckets[0].Used, want[i].used)
			}
			for n, a := range d.Answers {
				if a.Admitted != want[i].admit[n] {
					t.Errorf("call %d, cost %d: admitted %v", i, calls[i].Costs[n], a.Admitted)
				}
			}
		}
		if got := s.Decide(t.Context(), nil); len(got) != 0 {
			t.Errorf("no calls have %d results", len(got))
		}
	})
}

// TestPipelineCarriesErrors: a call that the server cannot run fails alone.
func TestPipelineCarriesErrors(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		odd := charge("k", 10, 1)
		odd.Buckets[0].Terms.Kind = "no such algorithm"
		r := s.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1), odd, charge("k", 10, 1)})
		if r[0].Err != nil || r[1].Err == nil || r[2].Err != nil {
			t.Fatalf("errors %v, %v, %v; want one, in the middle", r[0].Err, r[1].Err, r[2].Err)
		}
		if used := inspect(t, s, "k", terms(10)).Used; used != 2 {
			t.Errorf("used %d, want 2", used)
		}
	})
}

// TestDecideAllOrNothing: a request that lacks room in one bucket spends nothing in the other.
func TestDecideAllOrNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		steps := []struct {
			costs     []quantity.Units
			commit    bool
			admitted  quantity.Units
			used      quantity.Units // of both
			remaining [2]quantity.Units
		}{
			{[]quantity.Units{4}, true, 0, 0, [2]quantity.Units{10, 3}},
			{[]quantity.Units{3}, false, 1, 0, [2]quantity.Units{7, 0}},
			{[]quantity.Units{2, 2, 1, 1}, true, 2, 3, [2]quantity.Units{7, 0}},
			{[]quantity.Units{1}, true, 0, 3, [2]quantity.Units{7, 0}},
		}
		for i, c := range steps {
			d := decide(t, s, algorithms.Decide{Fence: under(epoch), Commit: c.commit,
				Costs: c.costs, Buckets: []algorithms.LimitTarget{target("wide", 10),
					target("narrow", 3)}})
			if admitted(d) != c.admitted {
				t.Errorf("step %d: %d admitted, want %d", i, admitted(d), c.admitted)
			}
			for b, id := range []string{"wide", "narrow"} {
				if got := d.Answers[len(c.costs)-1].Verdicts[b].Remaining; got != c.remaining[b] {
					t.Errorf("step %d: %d remain in %s, want %d", i, got, id, c.remaining[b])
				}
				if used := inspect(t, s, id, terms(10)).Used; used != c.used {
					t.Errorf("step %d: used %d of %s, want %d", i, used, id, c.used)
				}
			}
		}
	})
}

// TestCostsOutOfRange: one impossible cost refuses its whole call, the possible costs before it
// included.
func TestCostsOutOfRange(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		for _, cost := range []quantity.Units{0, -1, math.MinInt64, algorithms.MaxUnits + 1,
			math.MaxInt64} {
			d := decide(t, s, charge("k", 10, 1, cost, 1))
			if d.Status != algorithms.StatusImplausible || len(d.Answers) != 0 {
				t.Errorf("cost %d: %+v, want %v", cost, d, algorithms.StatusImplausible)
			}
		}
		if used := inspect(t, s, "k", terms(10)).Used; used != 0 {
			t.Errorf("used %d by refused calls", used)
		}
		if d := decide(t, s, charge("k", algorithms.MaxUnits, algorithms.MaxUnits,
			1)); admitted(d) != 1 || d.Buckets[0].Used != algorithms.MaxUnits {
			t.Errorf("the largest cost: %+v", d)
		}
	})
}

// TestDecideTogether: requests from many goroutines on one bucket admit exactly its share.
func TestDecideTogether(t *testing.T) {
	const goroutines, each, share = 8, 60, 200
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		var got atomic.Int64
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range each / 2 {
					for _, r := range s.Decide(context.Background(),
						[]algorithms.Decide{charge("k", share, 1), charge("k", share, 1)}) {
						if r.Err != nil {
							t.Errorf("%+v", r)
						}
						got.Add(int64(admitted(r.Value)))
					}
				}
			})
		}
		all.Wait()
		if used := inspect(t, s, "k", terms(share)).Used; got.Load() != share || used != share {
			t.Errorf("%d admitted and %d used of %d", got.Load(), used, share)
		}
	})
}

// TestMoveRights: rights leave one region's store and arrive in another's, each once however often
// it is said.
func TestMoveRights(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		lender := node(t, kind.start(t), first)
		borrower := node(t, kind.start(t), Opening{Region: "us", Epoch: epoch, Bootstrap: true})
		cell := decide(t, lender, charge("k", 10, 4)).Buckets[0].Cell
		for range 2 {
			gave := lender.Lend(t.Context(), []algorithms.Lend{
				{Fence: under(epoch), Target: algorithms.Target{Key: BucketKey(Whole, "k"),
					Terms: terms(10)},
					Debit: algorithms.Debit{Peer: "us", Cell: cell, Lent: 2, Cap: 10}},
				{Fence: under(epoch), Target: algorithms.Target{Key: BucketKey(Whole, "k"),
					Terms: terms(10)},
					Debit: algorithms.Debit{Peer: "us", Cell: cell, Lent: 9, Cap: 10}},
			})
			if g := must(t, gave[1]); g.Status != algorithms.StatusOK || g.Row.Lent != 6 ||
				g.Share != 4 || g.Used != 4 {
				t.Fatalf("lent %+v, want all of the 6 unspent", g)
			}
			credits := make([]algorithms.Credit, len(gave))
			for i, g := range gave {
				credits[i] = algorithms.Credit{Fence: under(epoch),
					Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: terms(5)},
					Announcement: algorithms.Announcement{Peer: "eu", PeerGeneration: 1, Cell: cell, Lent: must(t, g).Row.Lent,
						Most: 10}}
			}
			if c := must(t, borrower.Credit(t.Context(),
				credits)[1]); c.Status != algorithms.StatusOK || c.Share != 11 {
				t.Fatalf("credited %+v, want a share of 11", c)
			}
		}
		if n := admitted(decide(t, lender, charge("k", 10, 1))) +
			admitted(decide(t, borrower, charge("k", 5, 11, 1))); n != 1 {
			t.Errorf("%d requests admitted, want the borrower's first alone", n)
		}
		rows := inspect(t, borrower, "k", terms(5)).Rows
		want := algorithms.PeerRow{Cell: cell, Peer: "eu", Row: algorithms.Row{Borrowed: 6}}
		if len(rows) != 1 || rows[0] != want {
			t.Errorf("rows %+v, want %+v", rows, want)
		}
	})
}

// TestClockApart: a node whose clock is hours from its store's decides nothing, and is told why.
func TestClockApart(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, first)
		for _, by := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
			apart := connect(t, Options{URL: server.URL,
				Now: func() time.Time { return time.Now().Add(by) }})
			mustOpen(t, apart, first)
			allAre(t, apart, "k", algorithms.StatusClock)
			result := apart.DecidePatiently(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0]
			if refused := ClockRefusal(result.Err); refused == nil || refused.Kind != ClockApart {
				t.Errorf("%v apart, a decision fails by %v", by, result.Err)
			}
			said := "2h0m0s ahead of" // the server's clock is where the node's is not
			if by > 0 {
				said = "2h0m0s behind"
			}
			if err := apart.ClocksAgree(t.Context()); err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("%v apart: %v, want %q", by, err, said)
			}
		}
		if err := s.ClocksAgree(t.Context()); err != nil || ClockRefusal(err) != nil {
			t.Errorf("with the right time: %v", err)
		}
		if used := inspect(t, s, "k", terms(10)).Used; used != 0 {
			t.Errorf("used %d", used)
		}
	})
}

// TestClockApartBeginsNothing: a node whose clock is hours from its store's begins no generation
// there. One begun hours ahead would hold the store's time, and with it every cell, at that moment.
func TestClockApartBeginsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		for _, by := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
			for _, bootstrap := range []bool{true, false} {
				server := kind.start(t)
				apart := connect(t, Options{URL: server.URL,
					Now: func() time.Time { return time.Now().Add(by) }})
				_, err := apart.Open(t.Context(), Opening{Region: "eu", Epoch: epoch,
					Bootstrap: bootstrap})
				if err == nil || !strings.Contains(err.Error(), "clock") {
					t.Errorf("%v apart, bootstrap %v: %v, want an error about the clocks", by,
						bootstrap, err)
				}
				s := node(t, server, first)
				if d := decide(t, s, charge("k", 10, 1)); admitted(d) != 1 {
					t.Errorf("%v apart, bootstrap %v: a mate with the right time decides %+v", by,
						bootstrap, d)
				}
			}
		}
	})
}
