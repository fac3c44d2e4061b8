package region_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestClosedIsToldEverywhere: after a loss of the store's data a key that was used is answered
// recovering, and the decision, the bucket's ledger, a look at it, the status and a metric say
// until when. A key that nobody had used is answered at once.
func TestClosedIsToldEverywhere(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 10, window: 1m")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, used := c.running["us/n1"], request("used")
		nextCell(time.Minute)
		n.check(t, used)
		if s := n.Status(); len(s.Closed) != 0 {
			t.Fatalf("before the loss: %+v", s.Closed)
		}
		c.flushAll("us")
		var got admit.Decision
		c.within(5*time.Second, "the loss to be noticed", func() bool {
			got = n.check(t, used)
			return got.Reason == admit.Recovering
		})
		synctest.Wait() // until the node works by the rules of the store that it has opened
		got = n.check(t, used)
		if got.RetryAfter != time.Minute { // nobody knows how long it lasts
			t.Errorf("told to come again after %v", got.RetryAfter)
		}
		opens := time.Now().Add(got.ResetAfter)
		near := func(at time.Time) bool { return at.Sub(opens).Abs() < 2*time.Second }
		if s := n.Status(); len(s.Closed) != 1 || s.Closed[0].Limit != "minute" || !near(s.Closed[0].Until) {
			t.Errorf("the status says %+v, want %s", s.Closed, opens)
		}
		if left := n.series(t)["quotad_closed_seconds{limit=minute}"]; left <= 0 || left > got.ResetAfter.Seconds()+2 {
			t.Errorf("the metric says %v s, want %v", left, got.ResetAfter)
		}
		b, err := n.Bucket(t.Context(), "minute", "api", used.Descriptors)
		if err != nil || !near(b.ClosedUntil) {
			t.Errorf("the ledger says %s, want %s; %v", b.ClosedUntil, opens, err)
		}
		l, err := n.LookAt(t.Context(), policy.BucketID(n.tenure.Rules().Match(asked(used))[0].Bucket.ID), true)
		if err != nil || !near(l.ClosedUntil) || l.Now.Reason != admit.Recovering || l.Last.Reason != admit.Recovering {
			t.Errorf("a look says %+v; %v", l, err)
		}
		if other := n.check(t, request("never used")); !other.Allowed {
			t.Errorf("a key that nobody had used: %+v", other)
		}
		time.Sleep(got.ResetAfter + time.Second)
		if after := n.check(t, used); !after.Allowed {
			t.Errorf("when it should be open: %+v", after)
		}
		if s := n.Status(); len(s.Closed) != 0 {
			t.Errorf("when it should be open: %+v", s.Closed)
		}
		if b, err := n.Bucket(t.Context(), "minute", "api", used.Descriptors); err != nil || !b.ClosedUntil.IsZero() {
			t.Errorf("when it should be open: %s, %v", b.ClosedUntil, err)
		}
	})
}
