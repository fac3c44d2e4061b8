package region_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/decide/admit"
)

// If its limit says so, a request for which its region lacks rights waits for them once, and at
// most one and a half round trips.
func TestBorrowWithinTheRequest(t *testing.T) {
	const patience = 3 * oneWay
	limit := "limit: 100, window: 1h, lending_limit: 1"
	d := documents.Parse(t, 1, halves, "name: hour, on_exhausted: borrow, "+limit,
		"name: strict, domain: strict, "+limit,
		"name: strict, key: [account, address], "+limit)
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		timed := func(q admit.Request) (admit.Decision, time.Duration) {
			begun := time.Now()
			d := us.check(t, q)
			return d, time.Since(begun)
		}
		of := func(account string, cost quantity.Units) admit.Request {
			q := request(account)
			q.Cost = cost
			return q
		}
		if got, took := timed(of("a", 50)); !got.Allowed || took > 0 {
			t.Errorf("within the share: %+v after %v", got, took)
		}
		if got, err := us.Peek(t.Context(), of("a", 30)); err != nil || got.Allowed {
			t.Errorf("a peek borrowed: %+v, %v", got, err)
		}
		if got, took := timed(of("a", 30)); !got.Allowed || got.Share < 80 || took < 2*oneWay ||
			took > patience {
			t.Errorf("beyond the share: %+v after %v", got, took)
		}
		if got, took := timed(of("b", 100)); !got.Allowed || took > patience {
			t.Errorf("the whole limit: %+v after %v", got, took)
		}
		if got, took := timed(of("b", 1)); got.Allowed || got.Reason != admit.OverLimit ||
			took > patience {
			t.Errorf("nobody has any left: %+v after %v", got, took)
		}
		if got, took := timed(of("c", 101)); got.Allowed || got.Reason != admit.Never || took > 0 {
			t.Errorf("more than the limit: %+v after %v", got, took)
		}
		strict := admit.Request{Domain: "strict", Descriptors: request("d").Descriptors, Cost: 51}
		if got, took := timed(strict); got.Allowed || took > 0 {
			t.Errorf("a limit that denies at once: %+v after %v", got, took)
		}
		both := admit.Request{Domain: "api", Descriptors: map[string]string{"account": "e",
			"address": "x"}, Cost: 51}
		if got, took := timed(both); got.Allowed || took > 0 {
			t.Errorf("one of two limits denies at once: %+v after %v", got, took)
		}
	})
}

// A large cost of a token bucket that comes when tokens would arrive too late waits for the next cell,
// in which they are lent: at most three round trips. Where nobody can lend any it does not.
func TestTokensThatWouldComeTooLateAreWaitedFor(t *testing.T) {
	const untilEnd = 2 * oneWay // of the cell, which is a second
	d := documents.Parse(t, 1, threeRegions,
		"name: hour, algorithm: token_bucket, limit: 1000, window: 1h, burst: 1000, on_exhausted: borrow")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		attempt := func() (admit.Decision, time.Duration) {
			passed := time.Duration(time.Now().Nanosecond())
			time.Sleep(2*time.Second - passed - untilEnd)
			begun := time.Now()
			return us.check(t, cost("a", 900)), time.Since(begun)
		}
		attempt() // and asks what the others have
		if got, took := attempt(); !got.Allowed || took < untilEnd+2*oneWay || took > 6*oneWay {
			t.Errorf("%+v after %v", got, took)
		}
		var paused atomic.Int64
		var all sync.WaitGroup
		for range 5 { // two of them cost more than the limit
			all.Go(func() {
				if _, took := attempt(); took >= untilEnd {
					paused.Add(1)
				}
			})
		}
		if all.Wait(); paused.Load() != 1 {
			t.Errorf("%d requests wait for tokens of which there is a limit for one", paused.Load())
		}
		c.Network.Isolate("us/n1", time.Hour)
		time.Sleep(5 * time.Second)
		if got, took := attempt(); got.Allowed || took > 0 {
			t.Errorf("while all others are degraded: %+v after %v", got, took)
		}
	})
}

// During a cut such a request waits no longer than for an answer. Once the other region is degraded
// it does not wait at all.
func TestBorrowDuringACut(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: hour, limit: 100, window: 1h, on_exhausted: borrow")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		c.Network.Isolate("us/n1", time.Hour)
		half := request("a")
		half.Cost = 50
		us.check(t, half)
		synctest.Wait()
		patience := us.Status().Peers[0].RoundTrip * 3 / 2
		for _, want := range []struct{ after, took time.Duration }{{0, patience},
			{5 * time.Second, 0}} {
			time.Sleep(want.after)
			begun := time.Now()
			got := us.check(t, request("a"))
			if took := time.Since(begun); got.Allowed || got.Share != 50 ||
				took.Round(time.Millisecond) != want.took.Round(time.Millisecond) {
				t.Errorf("%v into the cut: %+v after %v, want %v", want.after, got, took, want.took)
			}
		}
	})
}

// Many requests that wait for one bucket ask for rights together. Whatever they get, it is not more
// than there is.
func TestBorrowTogether(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions,
		"name: hour, limit: 100, window: 1h, lending_limit: 1, on_exhausted: borrow")
	started(t, d, []string{"us/n1", "us/n2", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		whole := request("a")
		whole.Cost = 40 // all that us is entitled to
		c.running["us/n1"].check(t, whole)
		var admitted atomic.Int64
		var callers sync.WaitGroup
		for _, n := range []*running{c.running["us/n1"], c.running["us/n2"]} {
			for range 75 {
				callers.Go(func() {
					if n.check(t, request("a")).Allowed {
						admitted.Add(1)
					}
				})
			}
		}
		callers.Wait()
		if got := admitted.Load(); got == 0 || got > 60 {
			t.Errorf("%d of 150 admitted, the others have 60", got)
		}
	})
}

// A burst that uses up the share at one moment borrows as much as demand that grew slowly.
func TestBorrowInABurst(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: hour, limit: 100, window: 1h, on_exhausted: borrow")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		for i := range 60 {
			if got := us.check(t, request("a")); !got.Allowed {
				t.Fatalf("request %d is denied with %d asks sent: %+v", i+1, us.counter(t, "asks"),
					got)
			}
		}
	})
}

// A denial that the node remembers is no reason not to borrow, if the limit says so: the others may
// have rights to lend by now.
func TestBorrowAfterARememberedDenial(t *testing.T) {
	limit := "limit: 100, window: 1h, lending_limit: 1"
	for _, tc := range []struct {
		fields  string
		allowed bool
	}{{", on_exhausted: borrow", true}, {"", false}} {
		d := documents.Parse(t, 1, halves, "name: hour, "+limit+tc.fields)
		started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
			us := c.running["us/n1"]
			half := request("a")
			half.Cost = 50
			us.check(t, half)
			a := us.tenure.Rules().Match(asked(request("a")))[0]
			b, err := us.Bucket(t.Context(), "hour", "api", request("a").Descriptors)
			suite.Must(t, err)
			const later = 100 * 365 * 24 * time.Hour // so it is nobody's turn to ask again
			a.Held.Learn(held.Answer{Generation: us.tenure.Generation(), Now: b.Inspected.Now,
				State: b.Inspected.State, Ends: b.Inspected.Now.Add(time.Hour.Microseconds()),
				Asked: later, Heard: later, Denied: 1,
				Verdict: algorithms.Verdict{Retry: time.Hour.Microseconds()}})
			begun := time.Now()
			got := us.check(t, request("a"))
			if took := time.Since(begun); got.Allowed != tc.allowed ||
				got.FromMemory == tc.allowed || (took >= 2*oneWay) != tc.allowed {
				t.Errorf("%q: %+v after %v", tc.fields, got, took)
			}
		})
	}
}

// A request whose caller waits for less than a round trip between regions is denied before that
// caller gives up.
func TestABorrowNobodyWaitsFor(t *testing.T) {
	d := documents.Parse(t, 1, halves,
		"name: hour, on_exhausted: borrow, limit: 100, window: 1h, lending_limit: 1")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, q := c.running["us/n1"], request("a")
		q.Cost = 51
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		begun := time.Now()
		got, err := us.Check(ctx, q)
		if took := time.Since(begun); err != nil || got.Allowed || got.Share != 50 || took != 15*time.Millisecond {
			t.Errorf("%+v after %v, %v", got, took, err)
		}
		synctest.Wait()
		time.Sleep(4 * oneWay)
		if got := us.check(t, q); !got.Allowed {
			t.Errorf("what was asked for has not come: %+v", got)
		}
	})
}

// batch has a node decide requests at the same time.
func (n *running) batch(t *testing.T, all ...admit.Request) []admit.Decision {
	t.Helper()
	d, err := n.CheckBatch(t.Context(), all)
	if err != nil || len(d) != len(all) {
		t.Fatalf("%d decisions of %d, %v", len(d), len(all), err)
	}
	return d
}

// For a request of a batch, too, lacking rights are borrowed, at the same time wherever it stands,
// and a lost bucket is restored.
func TestBatchBorrowsAndRecovers(t *testing.T) {
	d := documents.Parse(t, 1, halves,
		"name: hour, on_exhausted: borrow, limit: 100, window: 1h, lending_limit: 1")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		n.check(t, cost("lost", 20))
		begun := time.Now()
		admitted := func(all []admit.Decision) {
			t.Helper()
			for i, d := range all {
				if !d.Allowed || d.Reason != admit.WithinLimit {
					t.Errorf("request %d: %+v", i, d)
				}
			}
		}
		all := []admit.Request{cost("a", 80)}
		for i := range 500 {
			all = append(all, cost("c"+strconv.Itoa(i), 1))
		}
		admitted(n.batch(t, append(all, cost("b", 70))...))
		if took := time.Since(begun); took < 2*oneWay || took > 3*oneWay {
			t.Errorf("it took %v: they did not borrow at the same time", took)
		}
		c.delete("us", n, "hour", request("lost"))
		admitted(n.batch(t, cost("d", 1), cost("lost", 1)))
		if used := n.used(t, "hour", request("lost")); used != 21 {
			t.Errorf("%d used of the bucket that was deleted, want 21", used)
		}
	})
}
