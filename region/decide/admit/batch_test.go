package admit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/memory/store"
)

// batch has a node decide requests at the same time.
func (n *running) batch(t *testing.T, all ...Request) []Decision {
	t.Helper()
	d, err := n.CheckBatch(t.Context(), all)
	if err != nil || len(d) != len(all) {
		t.Fatalf("%d decisions of %d, %v", len(d), len(all), err)
	}
	return d
}

// Each request of a batch is decided for itself: those of one bucket in their order, and as Check
// would.
func TestBatchDecidesEachForItself(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		unlimited := request("a")
		unlimited.Domain = "nobody's"
		got := n.batch(t, cost("a", 6), cost("a", 6), unlimited, cost("b", 10), cost("a", 4),
			cost("c", 11), named("d", "x", 3), named("d", "x", 3))
		want := []Reason{WithinLimit, OverLimit, NoLimit, WithinLimit, WithinLimit, Never,
			WithinLimit, WithinLimit}
		for i := range want {
			if got[i].Reason != want[i] || got[i].Sequence == 0 || got[i].Repeated != (i == 7) {
				t.Errorf("request %d: %+v, want %s", i, got[i], want[i])
			}
		}
		if used := n.used(t, "fixed-window", request("a")); used != 10 {
			t.Errorf("%d used", used)
		}
		if got := n.batch(t); len(got) != 0 {
			t.Errorf("an empty batch: %v", got)
		}
	})
}

// A request that is wrong is answered alone: nothing is charged for it, and the others are decided.
func TestBatchAnswersWrongRequestsAlone(t *testing.T) {
	var limits []string
	for i := range algorithms.MaxLoad + 1 { // more limits than one request may meet
		limits = append(limits, fmt.Sprintf("name: many-%d, domain: many, limit: 10, window: 1m", i))
	}
	d := documents.Parse(t, 1, alone, append(limits, limitOf(algorithms.FixedWindow, 10, ""))...)
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		many, unread := request("a"), request("a")
		many.Domain, unread.Unread = "many", invalid.Fieldf("body", "must be a JSON object")
		got := n.batch(t, cost("a", 0), cost("a", 3), Request{Domain: "api"}, unread, many,
			cost("a", 3))
		for i, field := range []string{"cost", "", "cost", "body", "descriptors", ""} {
			d := got[i]
			if field == "" {
				if !d.Allowed || d.Problem != nil {
					t.Errorf("request %d beside wrong ones: %+v", i, d)
				}
				continue
			}
			if d.Allowed || d.Reason != InvalidRequest || d.Problem == nil ||
				d.Problem.Name != field || d.Sequence == 0 || d.Node != "n1" {
				t.Errorf("request %d, whose %s is wrong: %+v", i, field, d)
			}
		}
		if used := n.used(t, "fixed-window", request("a")); used != 6 {
			t.Errorf("%d used, want 6", used)
		}
		if got := n.batch(t, cost("a", 0)); got[0].Reason != InvalidRequest {
			t.Errorf("a wrong request alone: %+v", got)
		}
	})
}

// A large batch is decided in the order of its requests, whatever lies between those of one bucket.
func TestBatchDecidesInOrder(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 5, ""))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		// 5 units. In another order other costs are admitted.
		costs := []quantity.Units{3, 4, 1, 2, 1, 1}
		admits := []bool{true, false, true, false, true, false}
		const apart = 150
		var all []Request
		for _, units := range costs {
			all = append(all, cost("ordered", units))
			for i := range apart {
				all = append(all, request(distinct(len(all)+i)))
			}
		}
		for i, d := range n.batch(t, all...) {
			if i%(apart+1) == 0 && d.Allowed != admits[i/(apart+1)] {
				t.Errorf("cost %d, number %d on its bucket: %+v", all[i].Cost, i/(apart+1), d)
			}
		}
	})
}

// Requests of a batch that span shards are charged everywhere or nowhere, beside those that do not.
func TestBatchSpansShards(t *testing.T) {
	spanned(t, []string{perAccount, perAddress}, func(t *testing.T, c *cluster, n *running) {
		got := n.batch(t, both(4), request("other"), both(4))
		if !got[1].Allowed || got[0].Allowed == got[2].Allowed {
			t.Errorf("%+v", got)
		}
		n.wantUsed(t, 4, 4)
	})
}

// A store that does not answer leaves a batch to on_store_failure at its deadline; a node that was
// closed says so.
func TestBatchWithoutAStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		s, _ := lab.NewTwin(now, "a").ConnectWithin(time.Second, time.Now)
		n := until(t, closed, s, 1, documents.Parse(t, 1, hereAndThere,
			"name: minute, limit: 100, window: 1m, lending_limit: 0.5",
			"name: deny, domain: deny, limit: 100, window: 1m, on_store_failure: deny"))
		q := request("a")
		q.Domain = "deny"
		begun := time.Now()
		got, err := n.CheckBatch(t.Context(), []Request{request("a"), q, request("b")})
		if err != nil || time.Since(begun) != n.deadline {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
		for i, want := range []Reason{StoreFailureLocal, StoreFailure, StoreFailureLocal} {
			if got[i].Reason != want {
				t.Errorf("request %d: %+v, want %s", i, got[i], want)
			}
		}
		close(closed)
		if _, err := n.CheckBatch(t.Context(), []Request{q}); !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// A batch that the store needs far longer for than a request may wait is decided in parts. For a
// caller who waits for less time than that, later parts are refused and not charged.
func TestLargeBatchesAreDecidedInParts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, s := busyNode(t)
		var all []Request
		for i := range 600 {
			all = append(all, request(distinct(i)))
		}
		if work := time.Duration(len(all)) * s.Script; work < 3*n.deadline {
			t.Fatalf("the store needs only %v", work)
		}
		got, err := n.CheckBatch(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range got {
			if d.Reason != WithinLimit {
				t.Fatalf("request %d: %+v, want %s", i, d, WithinLimit)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), n.deadline)
		defer cancel()
		for i := range all {
			all[i] = request("second-" + distinct(i))
		}
		second, err := n.CheckBatch(ctx, all)
		if err != nil || ctx.Err() != nil || second[0].Reason != WithinLimit ||
			second[len(all)-1].Reason != QueueFull {
			t.Errorf("before the caller gives up: %v, %v", err, ctx.Err())
		}
		time.Sleep(time.Second)
		for _, q := range []struct {
			request   Request
			remaining quantity.Units
		}{{all[0], 1000000 - 2}, {all[len(all)-1], 1000000 - 1}} {
			d, err := n.Peek(t.Context(), q.request)
			if err != nil || d.Remaining != q.remaining {
				t.Errorf("after that a request on %v would leave %d, want %d: %v",
					q.request.Descriptors, d.Remaining, q.remaining, err)
			}
		}
	})
}

// slowToOpen is a store's servers that take virtual time to be opened.
type slowToOpen struct {
	store.Servers
	takes time.Duration
}

// Look implements store.Servers.
func (s *slowToOpen) Look(ctx context.Context, shard store.Shard,
	nothing algorithms.Open) (store.Found, error) {
	time.Sleep(s.takes)
	return s.Servers.Look(ctx, shard, nothing)
}

// A request of a batch meets a deleted bucket, for which the store is opened anew, and that takes
// longer than a request may wait. The others were answered in the same round trip, so the store
// decides them.
func TestBatchHearsAllAnswersFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		twin := lab.NewTwin(now, "r")
		_, way := twin.Connect(time.Now)
		s := &slowToOpen{Servers: way}
		parts := store.Parts{Servers: s, NewSecret: func() string { return "secret" },
			Timeout: time.Minute, Deadline: store.DefaultTimeout}
		n := on(t, store.New(parts), 1,
			documents.Parse(t, 1, hereAndThere,
				"name: hour, limit: 1000, window: 1h, on_store_failure: local"))
		n.opened(t)
		all := []Request{request("deleted")}
		for i := range 20 { // each of them could be heard in time by chance
			all = append(all, request(distinct(i)))
		}
		if _, err := n.Check(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		twin.Delete(n.tenure.Rules().Match(asked(all[0]))[0].Target.Key)
		generation := n.tenure.Generation()
		s.takes = 2 * n.deadline
		got, err := n.CheckBatch(t.Context(), all)
		if err != nil || n.tenure.Generation() == generation {
			t.Fatalf("the store was not opened anew, which shows nothing: generation %d, %v",
				n.tenure.Generation(), err)
		}
		for i, d := range got[1:] {
			if d.Reason != WithinLimit {
				t.Errorf("request %d: %+v, want %s", i+1, d, WithinLimit)
			}
		}
	})
}
