package admit

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/receipts"
)

// again is what came of one request that was sent many times.
type again struct{ charged, repeated, denied int }

// sends sends one request so many times.
func (n *running) sends(t *testing.T, q Request, times int) (a again) {
	t.Helper()
	for range times {
		switch d := n.check(t, q); {
		case d.Repeated:
			a.repeated++
		case d.Allowed:
			a.charged++
		default:
			a.denied++
		}
	}
	return a
}

// repeats returns how many repeats had each outcome, as the metric says.
func (n *running) repeats(t *testing.T) map[string]float64 {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(n.Collectors()...)
	families, err := all.Gather()
	suite.Must(t, err)
	by := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "quotad_repeats_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			by[m.GetLabel()[0].GetName()+"="+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return by
}

// Sending all requests with one id does not get around the limit. Of 1,000 requests with one id
// under a limit of 10, as many are admitted as the limit and the default number of repeats
// together, and the repeats say that nothing was charged for them.
func TestOneIDForAllRequests(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, alone, limitOf(kind, 10, ""))
			started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
				n := c.running["us/n1"]
				want := again{charged: 10, repeated: algorithms.Repeats,
					denied: 1000 - 10 - algorithms.Repeats}
				if got := n.sends(t, named("a", "x", 1), 1000); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				by := n.repeats(t)
				if answered, anew := by["outcome=answered"],
					by["outcome=decided_anew"]; answered != 3 || anew != 996 {
					t.Errorf("counted %v answered and %v decided anew, want 3 and 996", answered,
						anew)
				}
				if got := n.sends(t, named("a", "y", 1), 1); got.denied != 1 {
					t.Errorf("another id: %+v", got)
				}
			})
		})
	}
}

// A request that was sent too often is decided as one without an id. It has its own receipt, and
// the first decision stays remembered until its minute is over.
func TestARequestSentTooOftenIsOneWithoutAnID(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, all := c.running["us/n1"], receipts.SettledCharge{Limit: "fixed-window", Back: 1}
		q := named("a", "x", 1)
		q.Receipt = true
		first := n.charged(t, q)
		for range algorithms.Repeats {
			if got := n.check(t, q); !got.Repeated || got.Receipt != first {
				t.Errorf("repeated: %+v", got)
			}
		}
		anew := n.check(t, q)
		if anew.Repeated || !anew.Allowed || anew.Receipt == first || anew.Remaining != 8 {
			t.Errorf("sent again too often: %+v", anew)
		}
		n.refunds(t, anew.Receipt, false, all)
		if got := n.check(t, q); got.Repeated || got.Remaining != 8 {
			t.Errorf("a refund of what was charged anew forgot the first: %+v", got)
		}
		n.refunds(t, first, false, all)
		if got := n.check(t, q); got.Repeated || !got.Allowed || got.Remaining != 8 {
			t.Errorf("refunded, and sent again: %+v", got)
		}
		if got := n.check(t, q); !got.Repeated {
			t.Errorf("the first repeat of another charge: %+v", got)
		}
		time.Sleep(time.Minute)
		if got := n.check(t, q); got.Repeated {
			t.Errorf("after its minute: %+v", got)
		}
	})
}

// Across several shards, too, a request that is sent too often is charged in all of them or in
// none, although each shard counts the repeats itself. Here one shard was asked once more than the
// other.
func TestSpanningSentTooOften(t *testing.T) {
	for _, limits := range [][]string{{perAccount, perAddress}, {perAddress, perAccount}} {
		spanned(t, limits, func(t *testing.T, c *cluster, n *running) {
			q := both(1)
			q.ID, q.Receipt = "r1", false
			n.asksFirstPart(t, q)
			n.asksFirstPart(t, q)
			want := again{charged: 5, repeated: 1, denied: 20 - 6}
			if got := n.sends(t, q, 20); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			n.wantUsed(t, 5, 5)
		})
	}
}
