package admit

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/receipts"
)

// What a client denied by itself is demand of the limits that the node, too, knows to deny, once.
func TestDeniedUnitsAreDemand(t *testing.T) {
	counted(t, hereAndThere, []string{
		// 100 of it are here
		"name: minute, algorithm: fixed_window, limit: 250, window: 1m, consistency: prefetch",
		"name: hour, algorithm: fixed_window, limit: 10000, window: 1h, consistency: prefetch"},
		func(t *testing.T, n *Limiter, s *countedServer) {
			q := units("a", 100)
			report := Take{Domain: q.Domain, Descriptors: q.Descriptors, Denied: 70, Admitted: 30}
			demand := func() map[quantity.Units]quantity.Units {
				t.Helper()
				s.items.Store(0)
				n.rights.Observations()
				if got, err := n.Take(t.Context(), report); err != nil || got.Units != 0 {
					t.Fatalf("%+v, %v", got, err)
				}
				if asked := s.items.Load(); asked != 0 {
					t.Errorf("%d items were sent to the store for a report", asked)
				}
				denied := map[quantity.Units]quantity.Units{}
				for _, o := range n.rights.Observations() {
					denied[o.Bucket.Limit] += o.Denied
					if o.Admitted != 0 {
						t.Errorf("%d units of the limit of %d counted as admitted", o.Admitted, o.Bucket.Limit)
					}
				}
				return denied
			}
			if !n.must(t, q).Allowed {
				t.Fatal("denied")
			}
			if got := demand(); len(got) != 0 {
				t.Errorf("%v counted as denied where the node knows of no denial", got)
			}
			if n.must(t, units("a", 1)).Allowed {
				t.Fatal("admitted")
			}
			for range 2 {
				if got := demand(); len(got) != 1 || got[250] != 70 {
					t.Errorf("%v counted as denied, want 70 of the limit of 250", got)
				}
			}
			if got := counts(t, n.metrics.clientDenied); got != 3*70 {
				t.Errorf("%d units in the metric of denied ones", got)
			}
			if got := counts(t, n.metrics.clientAdmitted); got != 3*30 {
				t.Errorf("%d units in the metric of admitted ones", got)
			}
		})
}

// What a request for units says must be in range, as of any request.
func TestTakesAreValidated(t *testing.T) {
	good := Take{Domain: "api", Units: 8}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*Take){
		"units":    func(q *Take) { q.Units = 1<<51 + 1 },
		"admitted": func(q *Take) { q.Admitted = -1 },
		"denied":   func(q *Take) { q.Denied = 1<<51 + 1 },
		"domain":   func(q *Take) { q.Domain = "" },
	} {
		q := good
		change(&q)
		if err, is := q.Validate().(*invalid.Field); !is || err.Name != field {
			t.Errorf("%s: %v", field, q.Validate())
		}
	}
}

// Units that are charged in several shards are bounded by the limit with least left, and go back in
// all of them.
func TestSpanningTake(t *testing.T) {
	spanned(t, []string{
		"name: per-account, algorithm: fixed_window, limit: 1000, window: 1h, consistency: prefetch",
		"name: per-address, key: [address], algorithm: fixed_window, limit: 100, window: 1h" +
			", consistency: prefetch",
	}, func(t *testing.T, c *cluster, n *running) {
		q := both(4)
		if shards := n.shardsOf(q); shards != 2 {
			t.Fatalf("%d shards: the test shows nothing", shards)
		}
		n.check(t, q)
		got, err := n.Take(t.Context(), Take{Domain: q.Domain, Descriptors: q.Descriptors, Units: 500})
		if err != nil || got.Units != 96/4 || got.Decision.Limit != "per-address" {
			t.Fatalf("%+v, %v", got, err)
		}
		n.wantUsed(t, 4+24, 4+24)
		for _, repeated := range []bool{false, true} {
			back, err := n.receipts.Settle(t.Context(), got.Receipt, 4)
			want := []receipts.SettledCharge{{Limit: "per-account", Back: 20}, {Limit: "per-address", Back: 20}}
			if err != nil || back.Repeated != repeated || !slices.Equal(back.Charges, want) {
				t.Errorf("%+v, %v", back, err)
			}
			n.wantUsed(t, 4+4, 4+4)
		}
	})
}
