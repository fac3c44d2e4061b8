package local

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
)

// A node admits floor((F - lending limit x F) / nodes) of a bucket and cell.
func TestWithoutStorePart(t *testing.T) {
	for _, tc := range []struct {
		limit   int64 // of which 40 % is F
		lending string
		nodes   int
		want    int
	}{
		{100, "0", 1, 40},
		{100, "0", 3, 13},
		{100, "0.5", 1, 20},
		{100, "0.5", 3, 6},
		{100, "0.95", 1, 2},
		{100, "1", 1, 0},
		{1000, "0.001", 1, 400},       // a lending limit below one unit
		{25, "0.25", 1, 8},            // F = 10, of which 2 may be lent
		{25, "0.25", 9, 0},            // less than a unit for each node
		{1000, "0.333333", 7, 38},     // floor(400 - 133) / 7
		{1000, "0.95", 20, 1},         // 20 units for 20 nodes
		{1000, "0.95", 21, 0},         // and for 21
		{100, "0.975", 1, 1},          // 39 of 40 lent
		{100, "0.974999", 1, 2},       // 38.99996: rounded down, for the lender
		{100, "0.950000", 40, 0},      // two units for forty nodes
		{1000, "0.5", 400, 0},         // nodes beyond units
		{1000, "0", 400, 1},           // one each
		{1000, "0", 399, 1},           // 1.0025
		{10_000, "0.95", 1, 200},      // the default lending limit
		{10_000, "0.9999", 1, 1},      // 0.4 rounded up to a unit kept, for 3999.6 is rounded down
		{10_000, "0.999999", 1, 1},    // likewise
		{10_000, "0.999999", 2, 0},    // and not shared out twice
		{10_000, "0.95", 3, 66},       // 200 / 3
		{10_000, "0.123456", 1, 3507}, // 4000 - 493
	} {
		t.Run(fmt.Sprintf("%d lending %s over %d", tc.limit, tc.lending, tc.nodes),
			func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					n := with(t, tc.nodes, fmt.Sprintf("name: minute, limit: %d, window: 1m, lending_limit: %s",
						tc.limit, tc.lending))
					if got := n.admits("a", tc.want+10); got != tc.want {
						t.Errorf("admitted %d, want %d", got, tc.want)
					}
				})
			})
	}
}

// Concurrent requests, of one limit and of two, never get more than the part.
func TestWithoutStoreConcurrently(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := with(t, 1, "name: wide, limit: 1000, window: 1m, lending_limit: 0.5",
			"name: narrow, key: [account, address], limit: 100, window: 1m, lending_limit: 0")
		var wide, narrow atomic.Int64
		var callers sync.WaitGroup
		for i := range 8 {
			q := map[string]string{"account": "a"}
			if i%2 == 0 {
				q["address"] = "x"
			}
			callers.Go(func() {
				for range 100 {
					if n.Spend(n.charges("api", q, 1), true).Admitted {
						wide.Add(1)
						if i%2 == 0 {
							narrow.Add(1)
						}
					}
				}
			})
		}
		callers.Wait()
		if wide.Load() > 200 || narrow.Load() > 40 {
			t.Errorf("admitted %d of 200 and %d of 40", wide.Load(), narrow.Load())
		}
		left := int64(n.admits("a", 300))
		if wide.Load()+left != 200 {
			t.Errorf("admitted %d and then %d, want 200 in all", wide.Load(), left)
		}
	})
}

func TestWithoutStoreIsBoundedAndForgets(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := with(t, 1, "name: second, limit: 100, window: 1s, lending_limit: 0",
			"name: hour, domain: slow, limit: 100, window: 1h, lending_limit: 0")
		const buckets = 1000
		slow := n.charges("slow", map[string]string{"account": "a"}, 1)
		n.asks("a", 1)
		n.Spend(slow, true)
		n.most = n.bytes
		for i := range buckets - 2 {
			account := fmt.Sprintf("random-%06d", i)
			if d := n.asks(account, 1); d.Admitted || d.Reset <= 0 {
				t.Fatalf("a bucket beyond the bound: %+v", d)
			}
			n.most += recordBytes + len("7:account,13:random-000000,")
			if d := n.asks(account, 1); !d.Admitted || d.Left != 39 {
				t.Fatalf("bucket %d, within the bound: %+v", i, d)
			}
		}
		if d := n.asks("one too many", 1); d.Admitted || d.Reset <= 0 {
			t.Errorf("a bucket beyond the bound: %+v", d)
		}
		if d := n.asks("a", 1); !d.Admitted || d.Left != 38 {
			t.Errorf("a bucket within the bound: %+v", d)
		}
		n.Forget(time.Now())
		if got := n.Status(); got.Buckets != buckets || got.Units != buckets+1 ||
			got.Refused != buckets-1 || got.Bytes != n.most {
			t.Errorf("%+v kept before their cells end, want %d buckets", got, buckets)
		}
		// one window, and the next in which the store may still be told of it
		time.Sleep(2 * time.Second)
		n.Forget(time.Now())
		if got := n.Status(); got.Buckets != 1 || got.Units != 1 || got.Unbooked != 1 ||
			got.Expired != buckets ||
			len(n.windows) != 1 || len(n.order) != 1 {
			t.Errorf("%+v kept in %d windows, want the bucket of an hour", got,
				len(n.windows))
		}
		if d := n.Spend(slow, true); d.Left != 38 {
			t.Errorf("a bucket whose cell goes on: %+v", d)
		}
		if d := n.asks("one too many", 1); !d.Admitted {
			t.Errorf("there is room again: %+v", d)
		}
	})
}

// When windows have ended that no longer count, new buckets find room at once, without
// housekeeping. A bucket that spent nothing takes no room.
func TestWithoutStoreSpentWindowsMakeRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := with(t, 1, "name: second, limit: 100, window: 1s, lending_limit: 0")
		for _, costs := range []quantity.Units{41, 1} { // 41 never fit
			n.Spend(n.charges("api", map[string]string{"account": "idle"}, costs), costs > 40)
		}
		if got := n.Status(); got.Buckets != 0 || got.Bytes != 0 {
			t.Errorf("buckets that spent nothing: %+v", got)
		}
		n.asks("000", 1)
		n.most = 100 * n.bytes
		for round := range 3 {
			admitted := 0
			for i := range 150 {
				if n.asks(fmt.Sprintf("%d%02d", i/100, i%100), 1).Admitted {
					admitted++
				}
			}
			if admitted != 100 {
				t.Errorf("round %d: %d of 150 buckets admitted, want 100", round, admitted)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// A cost is given back to the cell to which it was charged, which may be over.
func TestGiveBackAfterTheCellEnded(t *testing.T) {
	n := with(t, 1, "name: second, limit: 100, window: 1s, lending_limit: 0.5")
	a := n.applied("a")
	end := time.Unix(1000, 0)
	// the first limit of a request that the second will deny
	before := n.take(Charge{Applied: a, Cost: 15}, true, end.Add(-time.Microsecond))
	// another request, in the next cell
	n.take(Charge{Applied: a, Cost: 5}, true, end)
	// the first request again
	n.giveBack(a, 15, before.window)
	admitted := int64(5)
	for ; ; admitted++ {
		if !n.take(Charge{Applied: a, Cost: 1}, true, end).room {
			break
		}
	}
	if admitted > 20 {
		t.Errorf("%d admitted in one cell, the part is 20", admitted)
	}
}

// A clock that steps back over a cell end, after the housekeeping, does not give a finished cell's
// part once more.
func TestClockStepBackOpensNoCellTwice(t *testing.T) {
	n := with(t, 1, "name: second, limit: 100, window: 1s, lending_limit: 0.5")
	a := n.applied("a")
	now := time.Unix(1000, 0)
	n.take(Charge{Applied: a, Cost: 20}, true, now)
	n.Forget(now.Add(time.Second))
	again := n.take(Charge{Applied: a, Cost: 20}, true, now)
	if again.window != quantity.Cell(now.Unix()+1) ||
		n.take(Charge{Applied: a, Cost: 1}, true, now.Add(time.Second)).room {
		t.Errorf("charged to cell %d, which then has room for more than the part of 20",
			again.window)
	}
}

// A document that says the same once more gives no part twice, also of a window of the calendar.
func TestTheNextDocumentGivesNoPartTwice(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { // its time begins on 1 January 2000, 00:00 UTC
		const limit = "name: month, limit: 100, window: month, timezone: Europe/Berlin, lending_limit: 0.5"
		n := with(t, 2, limit)
		const left = 31*24*time.Hour - time.Hour // in Berlin it is 01:00
		if s := n.asks("a", 1); !s.Admitted || s.Reset != left || s.Left != 9 {
			t.Errorf("first: %+v", s)
		}
		n.rules = rulesOf(documents.Parse(t, 2, hereAndThere, limit), "here")
		if s := n.Spend(n.charges("api", map[string]string{"account": "a"}, 1), false); s.Left != 8 || s.Reset != left {
			t.Errorf("under the next document: %+v", s)
		}
	})
}
