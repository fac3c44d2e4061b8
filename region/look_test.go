package region_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/rules"
)

// TestLookAt: a look tells what the store holds, what became of the last request, and what would
// become of the next one, and charges nothing.
func TestLookAt(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: minute, limit: 10, window: 1m")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		c.meet()
		nextCell(time.Minute)
		n := c.running["us/n1"]
		id, err := n.BucketID("minute", "api", map[string]string{"account": "a"})
		suite.Must(t, err)
		if l, err := n.LookAt(t.Context(), id, true); err != nil || l.LastKnown || !l.Now.Allowed ||
			l.Inspected.Used != 0 || l.Terms.Entitlement != 4 || l.Limit.Name != "minute" {
			t.Errorf("before any request: %+v, %v", l, err)
		}
		n.usesUp(t, "a")
		l, err := n.LookAt(t.Context(), id, true)
		if ago := time.Since(l.Last.At); err != nil || !l.LastKnown || l.Last.Admitted ||
			l.Last.Reason != admit.OverLimit || ago < -time.Second || ago > time.Second {
			t.Errorf("after a denial: %+v, %v", l, err)
		}
		if l.Now.Allowed || l.Now.RetryAfter <= 0 || !l.Denies || l.Inspected.Free != 0 ||
			l.Inspected.Used < 4 || len(l.Degraded) != 0 {
			t.Errorf("after a denial: %+v", l)
		}
		if again, err := n.LookAt(t.Context(), id, true); err != nil ||
			again.Inspected.Used != l.Inspected.Used || again.Last != l.Last {
			t.Errorf("a look left something behind: %+v, %v", again, err)
		}
		c.Network.Isolate("us/n1", time.Hour)
		c.within(10*time.Second, "us is degraded towards two regions", func() bool {
			l, err := n.LookAt(t.Context(), id, false)
			return err == nil && len(l.Degraded) == 2 && !l.Degraded[0].Since.IsZero() &&
				time.Since(l.Degraded[0].Since) < 10*time.Second && l.Now.Reason == ""
		})
		if _, err := n.LookAt(t.Context(), policy.BucketRef{Domain: "api", Name: "other",
			Algorithm: policy.FixedWindow, Window: time.Minute,
			Key: []policy.KeyValue{{Name: "account", Value: "a"}}}.ID(), true); !errors.Is(err, rules.ErrNoSuchBucket) {
			t.Errorf("no such limit: %v", err)
		}
	})
}

// TestListBuckets: the buckets that were asked for, those that were chosen, and not more than asked
// for.
func TestListBuckets(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 10, window: 1m")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		for _, account := range []string{"a", "b", "c"} {
			n.check(t, request(account))
		}
		all, more := n.ListBuckets(func(ref policy.BucketRef) bool { return ref.Key[0].Value != "b" }, 5)
		var got []string
		for _, l := range all {
			got = append(got, l.Ref.Key[0].Value)
			if !l.LastKnown || !l.Last.Admitted {
				t.Errorf("%+v", l)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"a", "c"}) || more {
			t.Errorf("%v, more: %v", got, more)
		}
		if all, more := n.ListBuckets(func(policy.BucketRef) bool { return true }, 2); len(all) != 2 || !more {
			t.Errorf("%d of three, more: %v", len(all), more)
		}
	})
}

// TestNodesDescribeThemselves: a node asks all others, and drops what they were not asked for.
func TestNodesDescribeThemselves(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: minute, limit: 10, window: 1m")
	names := []string{"us/n1", "us/n2", "eu/n1", "ap/n1"}
	started(t, d, names, func(t *testing.T, c *cluster) {
		c.meet()
		for name, n := range c.running {
			if name == "ap/n1" {
				continue // it does not know yet how
			}
			says := n.config.Region
			n.HandleDescribe(func(_ context.Context, q *quotadv1.ViewRequest) *quotadv1.View {
				v := &quotadv1.View{Node: &quotadv1.NodeView{Status: &quotadv1.StatusResponse{
					Region: says, Node: n.config.Node}}}
				for range q.GetBuckets() {
					v.Buckets = append(v.Buckets, &quotadv1.BucketView{Region: says, Node: n.config.Node})
				}
				if q.GetHottest() == 7 { // more than can be asked for
					v.Buckets = append(v.Buckets, &quotadv1.BucketView{Region: says, Node: n.config.Node})
				}
				if q.GetHottest() == 8 {
					v.Node.Status.Region = "us"
				}
				return v
			})
		}
		ask := func(q *quotadv1.ViewRequest) (from []string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for _, v := range c.running["us/n1"].AskViews(ctx, q) {
				from = append(from, v.GetNode().GetStatus().GetRegion()+"/"+v.GetNode().GetStatus().GetNode())
			}
			slices.Sort(from)
			return from
		}
		if got := ask(&quotadv1.ViewRequest{Buckets: [][]byte{[]byte("a")}}); !slices.Equal(got, []string{"eu/n1", "us/n2"}) {
			t.Errorf("%v", got)
		}
		if got := ask(&quotadv1.ViewRequest{Hottest: 7}); len(got) != 0 {
			t.Errorf("answers with more than was asked for: %v", got)
		}
		if got := ask(&quotadv1.ViewRequest{Hottest: 8}); !slices.Equal(got, []string{"us/n2"}) {
			t.Errorf("answers in the name of another region: %v", got)
		}
		if got := ask(&quotadv1.ViewRequest{Hottest: 101}); len(got) != 0 {
			t.Errorf("a question beyond the bounds was answered by %v", got)
		}
		want := []string{"ap/n1", "eu/n1", "us/n1", "us/n2"}
		if got := c.running["us/n1"].Expected(); !slices.Equal(got, want) {
			t.Errorf("expected %v", got)
		}
	})
}

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
