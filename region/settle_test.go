package region_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/receipts"
)

// cost is a request of so many units that asks for a receipt.
func cost(account string, units quantity.Units) admit.Request {
	q := request(account)
	q.Cost, q.Receipt = units, true
	return q
}

// charged makes a request that must be admitted, and returns its receipt.
func (n *running) charged(t *testing.T, q admit.Request) string {
	t.Helper()
	d := n.check(t, q)
	if !d.Allowed || !strings.HasPrefix(d.Receipt, "qr1_") {
		t.Fatalf("%s: %+v, want a receipt", n.name, d)
	}
	return d.Receipt
}

// refunds fails the test unless a receipt can be refunded with this outcome, limit by limit.
func (n *running) refunds(t *testing.T, receipt string, repeated bool,
	want ...receipts.SettledCharge) {
	t.Helper()
	got, err := n.Settle(t.Context(), receipt, 0)
	if err != nil || got.Repeated != repeated || !slices.Equal(got.Charges, want) {
		t.Errorf("%s: refunded %+v, %v; want %+v, repeated %v", n.name, got, err, want, repeated)
	}
}

// used returns what counts against a limit.
func (n *running) used(t *testing.T, limit string, q admit.Request) quantity.Units {
	t.Helper()
	b, err := n.Bucket(t.Context(), limit, q.Domain, q.Descriptors)
	suite.Must(t, err)
	return b.Inspected.Used
}

// limitOf is a limit of a kind, named by it.
func limitOf(kind algorithms.Kind, units int, fields string) string {
	return fmt.Sprintf("name: %s, algorithm: %s, limit: %d, window: 10s%s",
		strings.ReplaceAll(string(kind), "_", "-"), kind, units, fields)
}

// nameOf is that name.
func nameOf(kind algorithms.Kind) string { return strings.ReplaceAll(string(kind), "_", "-") }

const (
	noLonger = "no longer weighs"
	promised = "turn promised"
	gone     = "no such limit any more"
)

// A charge is given back once, however often the receipt comes and from however many callers.
func TestRefundGivesBackOnce(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			want := receipts.SettledCharge{Limit: nameOf(kind), Back: 4}
			if kind == algorithms.LeakyBucket {
				want.Back, want.Reason = 0, promised
			}
			oneNode(t, documents.Parse(t, 1, alone, limitOf(kind, 10, "")), func(t *testing.T, c *cluster, n *running) {
				n.check(t, cost("a", 3))
				receipt, other := n.charged(t, cost("a", 4)), n.charged(t, cost("b", 4))
				n.refunds(t, receipt, false, want)
				n.check(t, cost("a", 1))
				for range 2 {
					n.refunds(t, receipt, true, want)
				}
				if got := n.used(t, nameOf(kind), request("a")); got != 3+4-want.Back+1 {
					t.Errorf("%d used after 3, 4, the refund of 4, and 1", got)
				}
				if got := n.used(t, nameOf(kind), request("b")); got != 4 {
					t.Errorf("%d used by another account, want its 4", got)
				}
				var first atomic.Int64
				var callers sync.WaitGroup
				for range 10 {
					callers.Go(func() {
						if got, err := n.Settle(t.Context(), other, 0); err == nil &&
							!got.Repeated && got.Charges[0] == want {
							first.Add(1)
						}
					})
				}
				callers.Wait()
				if got := n.used(t, nameOf(kind), request("b")); first.Load() != 1 ||
					got != 4-want.Back {
					t.Errorf("%d of 10 refunds at once were the first, %d units stay used",
						first.Load(), got)
				}
				series := n.series(t)
				if got := series["quotad_given_back_units_total{limit="+nameOf(kind)+"}"]; got !=
					float64(2*want.Back) {
					t.Errorf("%v units counted as refunded, want %d", got, 2*want.Back)
				}
			})
		})
	}
}

// Any node of a region refunds what the region charged, also a node that was started since.
func TestRefundByAnotherNode(t *testing.T) {
	d := documents.Parse(t, 1, halves, limitOf(algorithms.FixedWindow, 100, ""))
	all := receipts.SettledCharge{Limit: "fixed-window", Back: 4}
	started(t, d, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		n1, n2 := c.running["us/n1"], c.running["us/n2"]
		receipts := make([]string, 4)
		for i := range receipts {
			receipts[i] = n1.charged(t, cost("a", 4))
		}
		n2.refunds(t, receipts[0], false, all)
		n1.refunds(t, receipts[0], true, all)
		c.stop("us/n1")
		n2.refunds(t, receipts[1], false, all)
		n1 = c.start("us/n1", d)
		// the first receipt of this start, as receipts[0] was of the start before
		receipts = append(receipts, n1.charged(t, cost("a", 4)))
		n1.refunds(t, receipts[0], true, all)
		n1.refunds(t, receipts[1], true, all)
		n1.refunds(t, receipts[2], false, all)
		n2.refunds(t, receipts[4], false, all)
		if got := n1.used(t, "fixed-window", request("a")); got != 4 {
			t.Errorf("%d used, want the 4 of the receipt that nobody brought", got)
		}
		eu := c.running["eu/n1"]
		_, err := eu.Settle(t.Context(), receipts[3], 0)
		if refusal(t, err) != "receipt" || !strings.Contains(err.Error(),
			`of region "us", this is "eu"`) {
			t.Errorf("another region: %v", err)
		}
	})
}

// After a loss of the store nothing is given back of what was charged before. What was used beyond is charged
// all the same, once.
func TestSettleAfterALoss(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10,
		", on_store_failure: deny"))
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		receipt, other := n.charged(t, cost("a", 4)), n.charged(t, cost("a", 2))
		generation := n.Status().Generation
		c.flushAll("us")
		// The node has not noticed the loss yet.
		if _, err := n.Settle(t.Context(), receipt, 0); err == nil ||
			errors.Is(err, receipts.ErrRefused) {
			t.Errorf("by a store that is lost: %v", err)
		}
		c.within(time.Second, "the store to be opened anew",
			func() bool { return n.Status().Generation > generation })
		lost := receipts.SettledCharge{Limit: "fixed-window", Reason: algorithms.StoreLost.String()}
		for _, used := range []quantity.Units{0, 4} {
			n.settles(t, receipt, used, false, lost)
		}
		nextCell(10 * time.Second)
		nextCell(10 * time.Second)
		more := receipts.SettledCharge{Limit: "fixed-window", Charged: 5}
		n.settles(t, other, 7, false, more)
		n.settles(t, other, 7, true, more)
		if used := n.used(t, "fixed-window", request("a")); used != 5 {
			t.Errorf("%d used, want the 5 that are beyond", used)
		}
		c.stop("us/n1")
		n = c.start("us/n1", d) // its journal knows the seal
		n.settles(t, receipt, 9, false, receipts.SettledCharge{Limit: "fixed-window", Charged: 5})
		nextCell(10 * time.Second)
		after := n.charged(t, cost("a", 10))
		n.refunds(t, after, false, receipts.SettledCharge{Limit: "fixed-window", Back: 10})
		c.loseStore("us")
		if _, err := n.Settle(t.Context(), after, 0); err == nil || errors.Is(err, receipts.ErrRefused) {
			t.Errorf("by a store that is not there: %v", err)
		}
	})
}

// Each limit of a request gives back what it was charged. A shadow limit without room, and a limit
// that the document no longer has, give back nothing.
func TestRefundOfSeveralLimits(t *testing.T) {
	var limits []string
	var back []receipts.SettledCharge
	// All kinds together are too many for one request.
	kinds := slices.DeleteFunc(slices.Clone(algorithms.Kinds),
		func(k algorithms.Kind) bool { return k == algorithms.TokenBucket })
	for _, kind := range kinds {
		limits = append(limits, limitOf(kind, 100, ""))
		back = append(back, receipts.SettledCharge{Limit: nameOf(kind), Back: 3})
	}
	back[slices.Index(kinds, algorithms.LeakyBucket)] = receipts.SettledCharge{Limit: "leaky-bucket",
		Reason: promised}
	limits = append(limits, "name: watch, limit: 4, window: 10s, shadow: true")
	watched := receipts.SettledCharge{Limit: "watch", Back: 3}
	oneNode(t, documents.Parse(t, 1, alone, limits...), func(t *testing.T, c *cluster, n *running) {
		within, over := n.charged(t, cost("a", 3)), n.charged(t, cost("a", 3))
		n.refunds(t, over, false, back...)
		n.refunds(t, within, false, append(slices.Clone(back), watched)...)
		for _, charge := range append(slices.Clone(back), watched) {
			if got := n.used(t, charge.Limit, request("a")); got != 6-2*charge.Back &&
				charge.Limit != "watch" || charge.Limit == "watch" && got != 0 {
				t.Errorf("%s: %d used", charge.Limit, got)
			}
		}
		series := n.series(t)
		for _, charge := range back {
			if got := series["quotad_given_back_units_total{limit="+charge.Limit+"}"]; got !=
				float64(2*charge.Back) {
				t.Errorf("%s: %v units counted", charge.Limit, got)
			}
		}
		if got := series["quotad_given_back_units_total{limit=watch}"]; got != 3 {
			t.Errorf("watch: %v units counted", got)
		}

		orphan, half := n.charged(t, cost("b", 3)), n.charged(t, cost("b", 3))
		suite.Must(t, n.Adopt(t.Context(), documents.Parse(t, 2, alone, limits[:2]...)))
		want := append(slices.Clone(back), watched)
		for i := 2; i < len(want); i++ {
			want[i].Back, want[i].Reason = 0, gone
		}
		n.refunds(t, orphan, false, want...)
		n.refunds(t, orphan, true, want...)
		suite.Must(t, n.Adopt(t.Context(),
			documents.Parse(t, 3, alone, "name: other, domain: elsewhere, limit: 5, window: 10s")))
		for i := range want {
			want[i].Back, want[i].Reason = 0, gone
		}
		n.refunds(t, half, false, want[:4]...)
		n.refunds(t, half, true, want[:4]...)
	})
}

// A refund of the same receipt says the same again, also under a document with one limit fewer or
// more.
func TestRefundAgainUnderAnotherDocument(t *testing.T) {
	window, log := limitOf(algorithms.FixedWindow, 10, ""), limitOf(algorithms.SlidingWindowLog, 10,
		"")
	oneNode(t, documents.Parse(t, 1, alone, window, log), func(t *testing.T, c *cluster, n *running) {
		both, part := n.charged(t, cost("a", 3)), n.charged(t, cost("a", 3))
		back := []receipts.SettledCharge{{Limit: "fixed-window", Back: 3},
			{Limit: "sliding-window-log", Back: 3}}
		n.refunds(t, both, false, back...)
		suite.Must(t, n.Adopt(t.Context(), documents.Parse(t, 2, alone, log)))
		n.refunds(t, both, true, back...)
		half := []receipts.SettledCharge{{Limit: "fixed-window", Reason: gone}, back[1]}
		n.refunds(t, part, false, half...)
		suite.Must(t, n.Adopt(t.Context(), documents.Parse(t, 3, alone, window, log)))
		n.refunds(t, part, true, half...)
	})
}

// A charge is given back as long as it counts, by the time of its limit.
func TestRefundOfAnOldCharge(t *testing.T) {
	const second = time.Second
	for _, tc := range []struct {
		kind   algorithms.Kind
		after  time.Duration // the charge is made a second into a window of ten
		units  quantity.Units
		reason string
	}{
		{algorithms.FixedWindow, 9*second - 1000, 4, ""},
		{algorithms.FixedWindow, 9 * second, 0, noLonger},
		{algorithms.SlidingWindowCounter, 19*second - 1000, 4, ""},
		{algorithms.SlidingWindowCounter, 19 * second, 0, noLonger},
		{algorithms.SlidingWindowLog, 10*second - 1000, 4, ""},
		{algorithms.SlidingWindowLog, 10 * second, 0, noLonger},
		// 3 of the 4 tokens have come by themselves
		{algorithms.TokenBucket, 4*second - 1000, 1, ""},
		{algorithms.TokenBucket, 4*second + 1000, 0, noLonger},
		{algorithms.LeakyBucket, 0, 0, promised},
		{algorithms.LeakyBucket, time.Minute, 0, promised},
	} {
		t.Run(fmt.Sprint(tc.kind, " ", tc.after), func(t *testing.T) {
			oneNode(t, documents.Parse(t, 1, alone, limitOf(tc.kind, 10, "")), func(t *testing.T, c *cluster, n *running) {
				nextCell(10 * second)
				receipt := n.charged(t, cost("a", 4))
				time.Sleep(tc.after)
				want := receipts.SettledCharge{Limit: nameOf(tc.kind), Back: tc.units,
					Reason: tc.reason}
				n.refunds(t, receipt, false, want)
				time.Sleep(time.Minute)
				n.refunds(t, receipt, true, want)
				time.Sleep(10 * time.Minute) // it is forgotten when it is settled no longer
				want.Back, want.Reason = 0, algorithms.SettledLate.String()
				n.refunds(t, receipt, false, want)
			})
		})
	}
}

// Only a charge has a receipt.
func TestNoReceiptWithoutACharge(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""),
		"name: watch, domain: watched, limit: 1, window: 10s, shadow: true",
		"name: open, domain: open, limit: 10, window: 10s, on_store_failure: allow")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		in := func(domain string, q admit.Request) admit.Request { q.Domain = domain; return q }
		peek, err := n.Peek(t.Context(), cost("a", 1))
		plain := cost("a", 1)
		plain.Receipt = false
		for what, d := range map[string]admit.Decision{
			"a peek":           peek,
			"not asked for":    n.check(t, plain),
			"denied":           n.check(t, cost("a", 11)),
			"of no limit":      n.check(t, in("nobody's", cost("a", 1))),
			"of shadows alone": n.check(t, in("watched", cost("a", 2))),
		} {
			if err != nil || d.Receipt != "" {
				t.Errorf("%s: receipt %q, %v", what, d.Receipt, err)
			}
		}
		n.charged(t, in("watched", cost("a", 1)))
		c.loseStore("us")
		if d := n.check(t, in("open", cost("a", 1))); !d.Allowed || d.Receipt != "" {
			t.Errorf("without the store: %+v", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := n.Settle(ctx, "no receipt", 0); refusal(t, err) != "field" {
			t.Errorf("what is none is refused whether the caller waits or not: %v", err)
		}
	})
}

// A node that lost its journal gives other receipts than before.
func TestReceiptsAfterTheJournalIsLost(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		all := receipts.SettledCharge{Limit: "fixed-window", Back: 3}
		for range 2 {
			n := c.start("us/n1", d)
			n.refunds(t, n.charged(t, cost("a", 3)), false, all)
			c.stop("us/n1")
			suite.Must(t, os.Remove(filepath.Join(c.Dir, "us-n1")))
		}
	})
}

// If nothing is given back, the outcome has a reason.
func TestNothingGivenBackHasAReason(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		oneNode(t, documents.Parse(t, 1, alone, limitOf(kind, 10, "")), func(t *testing.T, c *cluster, n *running) {
			receipt := n.charged(t, cost("a", 3))
			if _, err := n.Reset(t.Context(), nameOf(kind), "api",
				request("a").Descriptors); err != nil {
				t.Fatal(err)
			}
			got, err := n.Settle(t.Context(), receipt, 0)
			if err != nil || got.Charges[0].Back == 0 && got.Charges[0].Reason == "" {
				t.Errorf("%s: after a reset: %+v, %v", kind, got, err)
			}
		})
	}
}
