package region_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/receipts"
)

const prefetch = ", consistency: prefetch"

// prefetchable are the kinds of which units may be taken.
var prefetchable = []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter}

// units is a client's request for so many units of an account.
func units(account string, units quantity.Units) admit.Take {
	q := request(account)
	return admit.Take{Domain: q.Domain, Descriptors: q.Descriptors, Units: units}
}

// take makes a request for units that must be answered.
func (n *running) take(t *testing.T, q admit.Take) admit.Taken {
	t.Helper()
	got, err := n.Take(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	return got
}

// givesBack fails the test unless units of a receipt can be given back with this outcome, limit by
// limit.
func (n *running) givesBack(t *testing.T, receipt string, units quantity.Units, repeated bool,
	want ...receipts.RefundedCharge) {
	t.Helper()
	got, err := n.GiveBack(t.Context(), receipt, units)
	if err != nil || got.Repeated != repeated || !slices.Equal(got.Charges, want) {
		t.Errorf("%s: gave back %+v, %v; want %+v, repeated %v", n.name, got, err, want, repeated)
	}
}

// A client is given at most a fourth of what is free for each node, nothing below eight units, and
// nothing of which the node has not heard from the store.
func TestTakeIsBounded(t *testing.T) {
	for _, kind := range prefetchable {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, alone, limitOf(kind, 1000, prefetch))
			started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				n := c.running["us/n1"]
				if got := n.take(t, units("a", 100)); got.Units != 0 {
					t.Errorf("%+v of a bucket that the node knows nothing of", got)
				}
				n.check(t, cost("a", 4)) // too little for the node to hold units itself
				used := quantity.Units(4)
				for i, asked := range append([]quantity.Units{1 << 51, 20, 8, 7, 0, 85},
					slices.Repeat([]quantity.Units{1 << 51}, 20)...) {
					given := min(asked, (1000-used)/4/2)
					if given < 8 {
						given = 0
					}
					used += given
					got := n.take(t, units("a", asked))
					if got.Units != given || (got.Receipt == "") != (given == 0) {
						t.Errorf("request %d, for %d: %+v, want %d", i, asked, got, given)
					}
					if given > 0 && (!got.Decision.Allowed || got.SpendWithin != time.Second ||
						got.Decision.Remaining != 1000-used) {
						t.Errorf("request %d, for %d: %+v, want %d remaining", i, asked, got, 1000-used)
					}
					if got := n.used(t, nameOf(kind), request("a")); got != used {
						t.Fatalf("request %d, for %d: %d used, want %d", i, asked, got, used)
					}
				}
				if used <= 1000-64 {
					t.Errorf("%d used: units were still free to give", used)
				}
			})
		})
	}
}

// Units are to be spent before the cell ends that they were charged to.
func TestTakenUnitsEndWithTheirCell(t *testing.T) {
	for _, kind := range prefetchable {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, alone, limitOf(kind, 1000, prefetch),
				"name: minute, algorithm: fixed_window, limit: 1000, window: 1m, consistency: prefetch")
			oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
				const window = 10 * time.Second
				time.Sleep(time.Until(time.Now().Truncate(window).Add(2*window - 300*time.Millisecond)))
				n.check(t, cost("a", 1))
				got := n.take(t, units("a", 100))
				if got.Units != 100 || got.SpendWithin > 300*time.Millisecond || got.SpendWithin <= 0 {
					t.Errorf("300 ms before a cell ends: %+v", got)
				}
			})
		})
	}
}

// Of what was charged, units go back once, whoever brings the receipt to whichever call.
func TestGiveBackGivesBackOnce(t *testing.T) {
	for _, kind := range prefetchable {
		t.Run(string(kind), func(t *testing.T) {
			of := func(units quantity.Units) receipts.RefundedCharge {
				return receipts.RefundedCharge{Limit: nameOf(kind), Units: units}
			}
			d := documents.Parse(t, 1, alone, limitOf(kind, 1000, prefetch))
			oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
				used := func(want quantity.Units) {
					t.Helper()
					if got := n.used(t, nameOf(kind), request("a")); got != want {
						t.Errorf("%d used, want %d", got, want)
					}
				}
				checked := n.charged(t, cost("a", 4))
				first, second, third := n.take(t, units("a", 100)).Receipt,
					n.take(t, units("a", 100)).Receipt, n.take(t, units("a", 100)).Receipt
				used(304)
				for _, wrong := range []quantity.Units{0, -1, 101, 1 << 60} {
					_, err := n.GiveBack(t.Context(), first, wrong)
					if field, is := errors.AsType[*invalid.Field](err); !is || field.Name != "units" {
						t.Errorf("%d units of 100: %v", wrong, err)
					}
				}
				used(304)
				n.givesBack(t, first, 30, false, of(30))
				used(274)
				n.givesBack(t, first, 30, true, of(30))
				n.givesBack(t, first, 70, true, of(30))
				n.refunds(t, first, true, of(30))
				used(274)
				n.refunds(t, second, false, of(100))
				n.givesBack(t, second, 10, true, of(100))
				used(174)
				n.givesBack(t, checked, 3, false, of(3))
				n.refunds(t, checked, true, of(3))
				used(171)
				var done, back atomic.Int64
				var callers sync.WaitGroup
				for i := range 10 {
					callers.Go(func() {
						got, err := n.GiveBack(t.Context(), third, quantity.Units(10+i))
						if err == nil && !got.Repeated {
							done.Add(1)
							back.Add(int64(got.Charges[0].Units))
						}
					})
				}
				callers.Wait()
				if done.Load() != 1 {
					t.Errorf("%d of 10 at once gave back", done.Load())
				}
				used(171 - quantity.Units(back.Load()))
				series := n.series(t)
				if got := series["quotad_client_taken_units_total{}"]; got != 300 {
					t.Errorf("%v units counted as taken", got)
				}
				if got := series["quotad_client_returned_units_total{}"]; got != float64(30+3+back.Load()) {
					t.Errorf("%v units counted as returned", got)
				}
			})
		})
	}
}

// Units go back to the cell that they were charged to: when it no longer counts, nothing does.
func TestUnitsAreGivenBackTooLate(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 1000, prefetch))
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		n.check(t, cost("a", 4))
		receipt := n.take(t, units("a", 100)).Receipt
		nextCell(10 * time.Second)
		n.check(t, cost("a", 3))
		n.givesBack(t, receipt, 100, false,
			receipts.RefundedCharge{Limit: "fixed-window", Reason: noLonger})
		if got := n.used(t, "fixed-window", request("a")); got != 3 {
			t.Errorf("%d used, want the 3 of the present cell", got)
		}
	})
}

// Units cannot be taken where a limit is exact, nor where none applies.
func TestTakeRefusesExactLimits(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 1000, prefetch),
		"name: exact, key: [account, address], algorithm: fixed_window, limit: 1000, window: 1m")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		both := units("a", 100)
		both.Descriptors = map[string]string{"account": "a", "address": "x"}
		none := units("a", 100)
		none.Domain = "web"
		for _, q := range []admit.Take{both, none} {
			if got, err := n.Take(t.Context(), q); !errors.Is(err, admit.ErrExact) {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if got := n.used(t, "fixed-window", request("a")); got != 0 {
			t.Errorf("%d used", got)
		}
	})
}

// Without its store a node gives no units: what its limits say is for Check to do.
func TestTakeWithoutTheStore(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 1000, prefetch))
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		n.check(t, cost("a", 4))
		c.loseStore("us")
		for range 2 {
			if got := n.take(t, units("a", 100)); got.Units != 0 || got.Receipt != "" {
				t.Errorf("%+v", got)
			}
		}
	})
}
