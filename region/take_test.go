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

// settles fails the test unless a receipt can be settled by a use with this outcome, limit by limit.
func (n *running) settles(t *testing.T, receipt string, used quantity.Units, repeated bool,
	want ...receipts.SettledCharge) {
	t.Helper()
	got, err := n.Settle(t.Context(), receipt, used)
	if err != nil || got.Repeated != repeated || !slices.Equal(got.Charges, want) {
		t.Errorf("%s: settled %+v, %v; want %+v, repeated %v", n.name, got, err, want, repeated)
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

// What a client took is settled once by what it used, whoever brings the receipt.
func TestATakeIsSettledOnce(t *testing.T) {
	for _, kind := range prefetchable {
		t.Run(string(kind), func(t *testing.T) {
			of := func(units quantity.Units) receipts.SettledCharge {
				return receipts.SettledCharge{Limit: nameOf(kind), Back: units}
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
				for _, wrong := range []quantity.Units{-1, 1<<51 + 1, 1 << 60} {
					_, err := n.Settle(t.Context(), first, wrong)
					if field, is := errors.AsType[*invalid.Field](err); !is || field.Name != "used" {
						t.Errorf("%d units used: %v", wrong, err)
					}
				}
				used(304)
				n.settles(t, first, 70, false, of(30))
				used(274)
				n.settles(t, first, 70, true, of(30))
				n.settles(t, first, 30, true, of(30))
				n.refunds(t, first, true, of(30))
				used(274)
				n.refunds(t, second, false, of(100))
				n.settles(t, second, 90, true, of(100))
				used(174)
				n.settles(t, checked, 1, false, of(3))
				n.refunds(t, checked, true, of(3))
				used(171)
				var done, back atomic.Int64
				var callers sync.WaitGroup
				for i := range 10 {
					callers.Go(func() {
						got, err := n.Settle(t.Context(), third, quantity.Units(90-i))
						if err == nil && !got.Repeated {
							done.Add(1)
							back.Add(int64(got.Charges[0].Back))
						}
					})
				}
				callers.Wait()
				if done.Load() != 1 {
					t.Errorf("%d of 10 at once settled it", done.Load())
				}
				used(171 - quantity.Units(back.Load()))
				series := n.series(t)
				if got := series["quotad_client_taken_units_total{}"]; got != 300 {
					t.Errorf("%v units counted as taken", got)
				}
				if got := series["quotad_given_back_units_total{limit="+nameOf(kind)+"}"]; got != float64(30+100+3+back.Load()) {
					t.Errorf("%v units counted as given back", got)
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
		n.settles(t, receipt, 0, false,
			receipts.SettledCharge{Limit: "fixed-window", Reason: noLonger})
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
