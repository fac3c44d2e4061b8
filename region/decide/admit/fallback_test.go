package admit

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
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
			if s := n.local.Status(); tc.reason != StoreFailureLocal && s.Buckets > 0 {
				t.Errorf("metered %+v", s)
			}
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

// Windows of the calendar begin when they do in their time zone.
func TestWithoutStoreCalendarWindows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { // its time begins on 1 January 2000, 00:00 UTC
		const limit = "name: month, limit: 100, window: month, timezone: Europe/Berlin, lending_limit: 0.5"
		n := unstarted(t, 2, documents.Parse(t, 1, hereAndThere, limit))
		const left = 31*24*time.Hour - time.Hour // in Berlin it is 01:00
		if d := n.askWithoutStore(request("a"), true); !d.Allowed || d.ResetAfter != left ||
			d.Remaining != 9 {
			t.Errorf("first: %+v", d)
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
