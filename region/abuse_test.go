package region_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/store"
)

// TestNobodyRidesOnAnId: requests without an id are never decided together with a request that has
// one, because the store remembers one answer for the id. In whatever order they come in a batch,
// each is charged.
func TestNobodyRidesOnAnId(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		var trips int
		n := c.startWatched("us/n1", d, func() { trips++ })
		together := func(requests ...admit.Request) []admit.Decision {
			t.Helper()
			trips = 0
			all, err := n.CheckBatch(t.Context(), requests)
			if err != nil || trips != 1 {
				t.Fatalf("decided in %d round trips, %v", trips, err)
			}
			return all
		}
		first := together(named("a", "x", 1), request("a"))
		if !first[0].Allowed || !first[1].Allowed || n.used(t, "fixed-window", request("a")) != 2 {
			t.Errorf("an id and a plain request: %+v, used %d", first,
				n.used(t, "fixed-window", request("a")))
		}
		second := together(named("a", "x", 1), named("a", "", 1000))
		if !second[0].Repeated || second[1].Allowed {
			t.Errorf("the id again, and a plain request of 1000 of 10: %+v", second)
		}
		third := together(named("a", "y", 1000), request("a"))
		if third[0].Allowed || !third[1].Allowed {
			t.Errorf("an id denied, and a plain request: %+v", third)
		}
		if got := n.check(t, named("a", "y", 1000)); got.Allowed || got.Repeated ||
			got.Reason != admit.Never {
			t.Errorf("the id that was denied, again: %+v", got)
		}
	})
}

// TestAnIdIsForgottenWithItsRefund: a job that failed and was refunded is charged anew when it is
// tried again under its id, and that charge has a receipt of its own.
func TestAnIdIsForgottenWithItsRefund(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: m, limit: 10, window: 1h")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		q := named("a", "order-7", 3)
		q.Receipt = true
		for round := range 3 {
			d := n.check(t, q)
			if d.Repeated || n.used(t, "m", q) != 3 {
				t.Fatalf("round %d: repeated %v, %d used", round, d.Repeated, n.used(t, "m", q))
			}
			time.Sleep(time.Millisecond)
			r, err := n.Settle(t.Context(), d.Receipt, 0)
			if err != nil || r.Repeated || r.Charges[0].Back != 3 || n.used(t, "m", q) != 0 {
				t.Fatalf("round %d: refund %+v, %v, %d used", round, r, err, n.used(t, "m", q))
			}
			time.Sleep(time.Duration(round) * 61 * time.Second)
		}
	})
}

// TestAbsurdCostsMakeNoDemand: a client that repeatedly asks for more than the limit causes no
// borrowing. Nor does the region lend the units that are spent.
func TestAbsurdCostsMakeNoDemand(t *testing.T) {
	started(t, documents.Parse(t, 1, threeRegions, "name: m, limit: 1000, window: 1w"),
		[]string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
			us, eu, ap := c.running["us/n1"], c.running["eu/n1"], c.running["ap/n1"]
			var spent int64
			take := func(n *running, units int) {
				for range units {
					if d := n.check(t, request("a")); !d.Allowed || d.Reason != admit.WithinLimit {
						return
					}
					spent++
				}
			}
			take(us, 400)
			time.Sleep(5 * time.Second) // it may borrow for more such demand, which then fades
			before := us.Status().Exchange.Borrowed
			for range 80 {
				for range 10 {
					us.check(t, cost("a", algorithms.MaxUnits))
				}
				take(eu, 30)
				take(ap, 30)
				time.Sleep(200 * time.Millisecond)
			}
			if spent > 1000 || spent < 950 {
				t.Errorf("%d of 1000 spent", spent)
			}
			if s := us.Status(); s.Exchange.Borrowed > before {
				t.Errorf("us borrowed %d for requests that no region can ever admit",
					s.Exchange.Borrowed-before)
			}
		})
}

// TestALimitGoneIsNotRefunded: a receipt is refunded for the limits that are in force. A second
// refund says the same after the document has changed.
func TestALimitGoneIsNotRefunded(t *testing.T) {
	hours := "name: h, limit: 100, window: 10h"
	oneNode(t, documents.Parse(t, 1, alone, "name: m, limit: 10, window: 1h", hours), func(t *testing.T, c *cluster, n *running) {
		q := cost("a", 3)
		q.Receipt = true
		both, gone := n.check(t, q).Receipt, n.check(t, q).Receipt
		refund := func(receipt string, repeated bool, want ...receipts.SettledCharge) {
			t.Helper()
			r, err := n.Settle(t.Context(), receipt, 0)
			if err != nil || r.Repeated != repeated || len(r.Charges) != 2 ||
				r.Charges[0] != want[0] || r.Charges[1] != want[1] {
				t.Errorf("refund: %+v, %v, want %+v", r, err, want)
			}
		}
		m, h := receipts.SettledCharge{Limit: "m", Back: 3}, receipts.SettledCharge{Limit: "h",
			Back: 3}
		missing := receipts.SettledCharge{Limit: "m", Reason: "no such limit any more"}
		refund(both, false, m, h)
		suite.Must(t, n.Adopt(t.Context(), documents.Parse(t, 2, alone, hours)))
		refund(both, true, m, h)
		refund(gone, false, missing, h)
		suite.Must(t, n.Adopt(t.Context(),
			documents.Parse(t, 3, alone, "name: m, limit: 10, window: 1h", hours)))
		refund(gone, true, missing, h)
	})
}

// TestRaisingALimitKeepsWhatWasTaken: 20,000 a day count in ticks of a microsecond, 30,000 in ticks
// of ten. What was taken before stays taken, and refill goes on.
func TestRaisingALimitKeepsWhatWasTaken(t *testing.T) {
	oneNode(t, documents.Parse(t, 1, alone,
		"name: m, algorithm: token_bucket, limit: 20000, window: 1h"), func(t *testing.T, c *cluster, n *running) {
		if d := n.check(t, cost("a", 18000)); !d.Allowed {
			t.Fatalf("18,000 of 20,000: %+v", d)
		}
		suite.Must(t, n.Adopt(t.Context(),
			documents.Parse(t, 2, alone,
				"name: m, algorithm: token_bucket, limit: 30000, window: 1h")))
		d := n.check(t, cost("a", 19999))
		if d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > time.Hour {
			t.Fatalf("19,999 more of 30,000: %+v", d)
		}
		time.Sleep(d.RetryAfter)
		if d := n.check(t, cost("a", 19999)); !d.Allowed {
			t.Errorf("at the retry time: %+v", d)
		}
	})
}

// TestAForgedRecallStopsNoLending: if calls between regions are in plain text, anybody can call in
// the name of any node. A question of generation 2^51 in the name of our region or of a peer does
// not stop lending or borrowing.
func TestAForgedRecallStopsNoLending(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: m, limit: 1000, window: 1h")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		us.check(t, request("a"))
		for _, n := range c.running {
			n.check(t, request("a"))
			for _, region := range []string{"us", "eu", "ap"} {
				id := string(n.tenure.Rules().Document.Limits[0].Bucket(request("a").Descriptors))
				all, err := n.rights.Answer(t.Context(), exchange.Question{From: region,
					Node: "forger", Generation: 1 << 51,
					Buckets: []exchange.Doubt{{Bucket: id}}})
				if err != nil || len(all.All) != 1 || !all.All[0].Refused {
					t.Errorf("a question in the name of %s: %+v, %v", region, all, err)
				}
			}
		}
		admitted := 0
		for range 900 {
			if us.check(t, request("a")).Allowed {
				admitted++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if s := us.Status().Exchange; admitted < 650 || s.Borrowed < 300 ||
			s.GenerationsRefused != 3 || s.Fenced {
			t.Errorf("%d of 900 admitted, %d borrowed, %d generations refused, fenced %t", admitted,
				s.Borrowed, s.GenerationsRefused, s.Fenced)
		}
	})
}

// watched connects to a region's store and tells a test when requests are sent to be decided.
type watched struct {
	store.Servers
	decides func() // called before each round trip with decisions
}

// Exec implements store.Servers.
func (w *watched) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	for _, c := range calls {
		if _, decides := c.Op.(*store.Op[algorithms.Items, algorithms.ItemsDecided]); decides {
			w.decides()
			break
		}
	}
	return w.Servers.Exec(ctx, calls)
}

// startWatched starts a node on a twin, and has decides called before each round trip in which the
// store decides requests.
func (c *cluster) startWatched(name string, d *policy.Document, decides func()) *running {
	c.t.Helper()
	return c.start(name, d, func(cfg *region.Config) {
		_ = cfg.Store.Close()
		_, way := c.onTwin(cfg.Region).Connect(time.Now)
		cfg.Store = store.New(store.Parts{Servers: &watched{way, decides},
			Address: store.AddressOf("in memory"),
			Timeout: time.Hour, Deadline: c.deadline, NewSecret: rand.Text})
	})
}
