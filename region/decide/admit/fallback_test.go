package admit

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// askWithoutStore has a node decide as when its store does not answer.
func (n *Limiter) askWithoutStore(q Request, commit bool) Decision {
	w := n.prepare(q, commit, nil)
	return n.withoutStore(&w)
}

// fits says how many single units of one account a node without a store admits.
func (n *Limiter) fits(t *testing.T, q Request, most int) (units int) {
	t.Helper()
	for units < most && n.askWithoutStore(q, true).Allowed {
		units++
	}
	return units
}

func TestWithoutStorePrecedence(t *testing.T) {
	limit := func(name, behaviour string) string {
		return fmt.Sprintf("name: %s, limit: 100, window: 1m, on_store_failure: %s", name,
			behaviour)
	}
	deny, local, allow := limit("deny", "deny"), limit("local", "local"), limit("allow", "allow")
	quiet := func(l string) string { return l + ", shadow: true" }
	for name, tc := range map[string]struct {
		limits  []string
		allowed bool
		reason  Reason
		by      string
	}{
		"deny":                         {[]string{deny}, false, StoreFailure, "deny"},
		"local":                        {[]string{local}, true, StoreFailureLocal, "local"},
		"allow":                        {[]string{allow}, true, StoreFailureAllowed, "allow"},
		"deny before the others":       {[]string{allow, local, deny}, false, StoreFailure, "deny"},
		"local before allow":           {[]string{allow, local}, true, StoreFailureLocal, "local"},
		"local before allow, reversed": {[]string{local, allow}, true, StoreFailureLocal, "local"},
		"shadow does not deny": {[]string{quiet(deny), allow}, true, StoreFailureAllowed,
			"deny"},
		"shadow is not metered": {[]string{quiet(local), allow}, true, StoreFailureAllowed,
			"local"},
		"shadow alone": {[]string{quiet(deny)}, true, StoreFailureAllowed, "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, tc.limits...))
			d := n.askWithoutStore(request("a"), true)
			if d.Allowed != tc.allowed || d.Reason != tc.reason || d.Limit != tc.by {
				t.Errorf("decision %+v", d)
			}
			if d.Cell != 0 || d.At != 0 || d.Share != 0 || d.Entitlement != 40 {
				t.Errorf("what only a store knows: %+v", d)
			}
			if tc.reason != StoreFailureLocal && n.fallback.buckets > 0 {
				t.Errorf("metered %+v", n.fallback.windows)
			}
		})
	}
}

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
					n := unstarted(t, tc.nodes, documents.Parse(t, 1, hereAndThere,
						fmt.Sprintf("name: minute, limit: %d, window: 1m, lending_limit: %s",
							tc.limit, tc.lending)))
					if got := n.fits(t, request("a"), tc.want+10); got != tc.want {
						t.Errorf("admitted %d, want %d", got, tc.want)
					}
				})
			})
	}
}

func TestWithoutStoreCells(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 2, documents.Parse(t, 1, hereAndThere,
			"name: minute, limit: 100, window: 1m, lending_limit: 0.5"))
		time.Sleep(50 * time.Second) // the bubble's time begins with a minute
		q := request("a")
		q.Cost = 4
		if d := n.askWithoutStore(q, false); !d.Allowed || d.Remaining != 6 {
			t.Errorf("peek: %+v", d)
		}
		if d := n.askWithoutStore(q, true); !d.Allowed || d.Remaining != 6 ||
			d.ResetAfter != 10*time.Second || d.RetryAfter != 0 {
			t.Errorf("first: %+v", d)
		}
		q.Cost = 7
		if d := n.askWithoutStore(q, true); d.Allowed || d.Remaining != 6 ||
			d.RetryAfter != 10*time.Second {
			t.Errorf("one too many: %+v", d)
		}
		if got := n.fits(t, request("a"), 20); got != 6 {
			t.Errorf("%d more admitted, want 6", got)
		}
		if got := n.fits(t, request("b"), 20); got != 10 {
			t.Errorf("another account: %d admitted, want 10", got)
		}
		time.Sleep(10*time.Second - time.Microsecond)
		if d := n.askWithoutStore(request("a"), true); d.Allowed ||
			d.ResetAfter != time.Microsecond {
			t.Errorf("at the cell's end: %+v", d)
		}
		time.Sleep(time.Microsecond)
		if got := n.fits(t, request("a"), 20); got != 10 {
			t.Errorf("next cell: %d admitted, want 10", got)
		}
	})
}

// Windows of the calendar begin when they do in their time zone, and a document that says the same
// once more gives no part twice.
func TestWithoutStoreCalendarWindows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { // its time begins on 1 January 2000, 00:00 UTC
		const limit = "name: month, limit: 100, window: month, timezone: Europe/Berlin, lending_limit: 0.5"
		n := unstarted(t, 2, documents.Parse(t, 1, hereAndThere, limit))
		const left = 31*24*time.Hour - time.Hour // in Berlin it is 01:00
		if d := n.askWithoutStore(request("a"), true); !d.Allowed || d.ResetAfter != left ||
			d.Remaining != 9 {
			t.Errorf("first: %+v", d)
		}
		again := rules.New(barrier.Only(documents.Parse(t, 2, hereAndThere, limit),
			n.config.Region), n.tenure.Rules().Shards)
		all := again.Match("api", request("a").Descriptors)
		if m := n.fallback.take(all[0], 1, false, time.Now()); m.left != 8 || m.reset != left {
			t.Errorf("under the next document: %+v", m)
		}
		if got := n.fits(t, request("a"), 20); got != 9 {
			t.Errorf("admitted %d more, want 9", got)
		}
		time.Sleep(left - time.Microsecond)
		if d := n.askWithoutStore(request("a"), true); d.Allowed || d.RetryAfter != time.Microsecond {
			t.Errorf("at the month's end: %+v", d)
		}
		time.Sleep(time.Microsecond)
		if d := n.askWithoutStore(request("a"), true); !d.Allowed ||
			d.ResetAfter != 29*24*time.Hour {
			t.Errorf("February: %+v", d)
		}
	})
}

// A request of several limits is charged to all of them or to none.
func TestWithoutStoreChargesAllOrNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: wide, limit: 100, window: 1m, lending_limit: 0.75",
			"name: odd, limit: 5, window: 1m, on_store_failure: allow",
			"name: quiet, limit: 5, window: 1m, shadow: true",
			"name: narrow, key: [account, address], limit: 10, window: 1h, lending_limit: 0"))
		both := Request{Domain: "api", Descriptors: map[string]string{"account": "a",
			"address": "x"}, Cost: 1}
		if got := n.fits(t, both, 20); got != 4 {
			t.Errorf("both limits: %d admitted, want 4", got)
		}
		d := n.askWithoutStore(both, true)
		if d.Allowed || d.Limit != "narrow" || d.RetryAfter != unknownWithin {
			t.Errorf("denied: %+v", d)
		}
		for range 10 {
			n.askWithoutStore(both, true)
			n.askWithoutStore(both, false)
		}
		if got := n.fits(t, request("a"), 20); got != 6 {
			t.Errorf("the wide limit alone: %d more, want the 6 that no admitted request was charged", got)
		}
	})
}

// Concurrent requests, of one limit and of two, never get more than the part.
func TestWithoutStoreConcurrently(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: wide, limit: 1000, window: 1m, lending_limit: 0.5",
			"name: narrow, key: [account, address], limit: 100, window: 1m, lending_limit: 0"))
		var wide, narrow atomic.Int64
		var callers sync.WaitGroup
		for i := range 8 {
			q := request("a")
			if i%2 == 0 {
				q.Descriptors = map[string]string{"account": "a", "address": "x"}
			}
			callers.Go(func() {
				for range 100 {
					if n.askWithoutStore(q, true).Allowed {
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
		left := int64(n.fits(t, request("a"), 300))
		if wide.Load()+left != 200 {
			t.Errorf("admitted %d and then %d, want 200 in all", wide.Load(), left)
		}
	})
}

func TestWithoutStoreIsBoundedAndForgets(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: second, limit: 100, window: 1s, lending_limit: 0",
			"name: hour, domain: slow, limit: 100, window: 1h, lending_limit: 0"))
		const buckets = 1000
		slow := Request{Domain: "slow", Descriptors: map[string]string{"account": "a"}, Cost: 1}
		n.askWithoutStore(request("a"), true)
		n.askWithoutStore(slow, true)
		n.fallback.most = n.fallback.bytes
		for i := range buckets - 2 {
			q := request(fmt.Sprintf("random-%06d", i))
			if d := n.askWithoutStore(q, true); d.Allowed || d.RetryAfter <= 0 {
				t.Fatalf("a bucket beyond the bound: %+v", d)
			}
			n.fallback.most += fallbackRecordBytes + len("7:account,13:random-000000,")
			if d := n.askWithoutStore(q, true); !d.Allowed || d.Remaining != 39 {
				t.Fatalf("bucket %d, within the bound: %+v", i, d)
			}
		}
		if d := n.askWithoutStore(request("one too many"), true); d.Allowed || d.RetryAfter <= 0 {
			t.Errorf("a bucket beyond the bound: %+v", d)
		}
		if d := n.askWithoutStore(request("a"), true); !d.Allowed || d.Remaining != 38 {
			t.Errorf("a bucket within the bound: %+v", d)
		}
		n.fallback.forget(time.Now())
		if got := n.fallback.Status(); got.Buckets != buckets || got.Units != buckets+1 ||
			got.Refused != buckets-1 || got.Bytes != n.fallback.most {
			t.Errorf("%+v kept before their cells end, want %d buckets", got, buckets)
		}
		// one window, and the next in which the store may still be told of it
		time.Sleep(2 * time.Second)
		n.fallback.forget(time.Now())
		if got := n.fallback.Status(); got.Buckets != 1 || got.Units != 1 || got.Unbooked != 1 ||
			got.Expired != buckets ||
			len(n.fallback.windows) != 1 || len(n.fallback.order) != 1 {
			t.Errorf("%+v kept in %d windows, want the bucket of an hour", got,
				len(n.fallback.windows))
		}
		if d := n.askWithoutStore(slow, true); d.Remaining != 38 {
			t.Errorf("a bucket whose cell goes on: %+v", d)
		}
		if d := n.askWithoutStore(request("one too many"), true); !d.Allowed {
			t.Errorf("there is room again: %+v", d)
		}
	})
}

// When windows have ended that no longer count, new buckets find room at once, without
// housekeeping. A bucket that spent nothing takes no room.
func TestWithoutStoreSpentWindowsMakeRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: second, limit: 100, window: 1s, lending_limit: 0"))
		for _, costs := range []quantity.Units{41, 1} { // 41 never fit
			q := request("idle")
			q.Cost = costs
			n.askWithoutStore(q, costs > 40)
		}
		if got := n.fallback.Status(); got.Buckets != 0 || got.Bytes != 0 {
			t.Errorf("buckets that spent nothing: %+v", got)
		}
		n.askWithoutStore(request("000"), true)
		n.fallback.most = 100 * n.fallback.bytes
		for round := range 3 {
			admitted := 0
			for i := range 150 {
				if n.askWithoutStore(request(fmt.Sprintf("%d%02d", i/100, i%100)), true).Allowed {
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

// The store is told of all that was spent, in turns of bounded length. A spend that it cannot
// charge does not keep the others waiting.
func TestUnbookedTakesTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: minute, limit: 100, window: 1m, lending_limit: 0",
			"name: hour, domain: slow, limit: 100, window: 1h, lending_limit: 0"))
		const accounts, turn = 50, 7
		for i := range accounts {
			q := request(fmt.Sprint(i))
			n.askWithoutStore(q, true)
			q.Domain = "slow"
			n.askWithoutStore(q, true)
		}
		told := map[string]int{}
		for range 2 * (2*accounts/turn + 2) {
			all := n.fallback.unsettled(turn)
			if len(all) > turn {
				t.Fatalf("%d at a time, at most %d may be", len(all), turn)
			}
			for _, b := range all {
				if told[b.bucket]++; strings.Contains(b.bucket, ",1:0,") ||
					strings.Contains(b.bucket, ",1:1,") {
					continue // the store cannot charge it
				}
				if got := n.fallback.settled(b); got != 1 {
					t.Errorf("%d units of %s booked", got, b.bucket)
				}
			}
		}
		if got := n.fallback.Status(); len(told) != 2*accounts || got.Unbooked != 4 ||
			got.Units != 2*accounts {
			t.Errorf("told of %d of %d buckets, then %+v", len(told), 2*accounts, got)
		}
		n.fallback.settleAnew()
		if got := n.fallback.Status(); got.Unbooked != 2*accounts ||
			len(n.fallback.unsettled(1000)) != 2*accounts {
			t.Errorf("after a loss %+v", got)
		}
	})
}

// A cost is given back to the cell to which it was charged, which may be over.
func TestGiveBackAfterTheCellEnded(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: second, limit: 100, window: 1s, lending_limit: 0.5"))
	all := n.tenure.Rules().Match(asked(request("a")))
	end := time.Unix(1000, 0)
	// the first limit of a request that the second will deny
	before := n.fallback.take(all[0], 15, true, end.Add(-time.Microsecond))
	// another request, in the next cell
	n.fallback.take(all[0], 5, true, end)
	// the first request again
	n.fallback.giveBack(all[0], 15, before.window)
	admitted := int64(5)
	for ; ; admitted++ {
		if !n.fallback.take(all[0], 1, true, end).room {
			break
		}
	}
	if admitted > 20 {
		t.Errorf("%d admitted in one cell, the part is 20", admitted)
	}
}

// Without the store, too, the limit with least remaining decides.
func TestWithoutStoreTheLeastRemainingDecides(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: narrow, limit: 10, window: 1s, lending_limit: 0",
		"name: wide, limit: 1000, window: 1s, lending_limit: 0"))
	if d := n.askWithoutStore(request("a"), true); d.Limit != "narrow" || d.Remaining != 3 {
		t.Errorf("%s with %d remaining; narrow has 3", d.Limit, d.Remaining)
	}
}

// Without the store a cost above the part has no time to come back at.
func TestWithoutStoreACostThatNeverFits(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: second, limit: 100, window: 1s, lending_limit: 0.5"))
	q := request("a")
	q.Cost = 21
	if d := n.askWithoutStore(q, true); d.Allowed || d.RetryAfter >= 0 {
		t.Errorf("21 of a part of 20: %+v", d)
	}
}

// A clock that steps back over a cell end, after the housekeeping, does not give a finished cell's
// part once more.
func TestClockStepBackOpensNoCellTwice(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: second, limit: 100, window: 1s, lending_limit: 0.5"))
	a := n.tenure.Rules().Match(asked(request("a")))[0]
	now := time.Unix(1000, 0)
	n.fallback.take(a, 20, true, now)
	n.fallback.forget(now.Add(time.Second))
	again := n.fallback.take(a, 20, true, now)
	if again.window != quantity.Cell(now.Unix()+1) ||
		n.fallback.take(a, 1, true, now.Add(time.Second)).room {
		t.Errorf("charged to cell %d, which then has room for more than the part of 20",
			again.window)
	}
}
