package region_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/memory/rules"
)

// A reset clears the use of one bucket of any kind, including use of the window before that still
// counts.
func TestReset(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, alone, limitOf(kind, 10, ""),
				"name: other, limit: 100, window: 10s")
			oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
				if kind == algorithms.SlidingWindowCounter {
					time.Sleep(9 * time.Second)
				}
				n.check(t, cost("a", 7))
				n.check(t, cost("b", 7))
				used := quantity.Units(7)
				if kind == algorithms.SlidingWindowCounter {
					nextCell(10 * time.Second)
					n.check(t, cost("a", 2))
					used = 9 // nine tenths of 7, and 2
				}
				for _, want := range []quantity.Units{used, 0} {
					if got, err := n.Reset(t.Context(), nameOf(kind), "api",
						request("a").Descriptors); err != nil || got != want {
						t.Errorf("%d cleared, %v; want %d", got, err, want)
					}
				}
				if got := n.used(t, nameOf(kind), request("b")); got < 6 {
					t.Errorf("another account's use was cleared to %d", got)
				}
				if got := n.used(t, "other", request("a")); got < 2 {
					t.Errorf("another limit's use was cleared to %d", got)
				}
				if admitted, last := n.drain(t, request("a"), 20); admitted != 10 ||
					last.Limit != nameOf(kind) {
					t.Errorf("%d admitted after the reset, then %+v", admitted, last)
				}
				series := n.series(t)
				if got := series["quotad_resets_total{limit="+nameOf(kind)+"}"]; got != 2 {
					t.Errorf("%v resets counted", got)
				}
			})
		})
	}
}

// Only use is cleared: rights that were moved stay where they are, and so does the other region's
// use.
func TestResetKeepsTheLedger(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: hour, limit: 100, window: 1h, on_exhausted: borrow")
	twoRegions(t, d, func(t *testing.T, c *cluster, us, eu *running) {
		us.check(t, cost("a", 50))
		if d := us.check(t, cost("a", 20)); !d.Allowed {
			t.Fatalf("us borrowed nothing: %+v", d)
		}
		if d := eu.check(t, cost("a", 10)); !d.Allowed {
			t.Fatalf("eu has none of what it was left: %+v", d)
		}
		rows := func(n *running) (share, used quantity.Units, rows []algorithms.PeerRow) {
			b, err := n.Bucket(t.Context(), "hour", "api", request("a").Descriptors)
			suite.Must(t, err)
			return b.Inspected.Share, b.Inspected.Used, b.Inspected.Rows
		}
		share, _, before := rows(us)
		if got, err := us.Reset(t.Context(), "hour", "api", request("a").Descriptors); err != nil ||
			got != 70 {
			t.Errorf("%d cleared, %v", got, err)
		}
		after, used, kept := rows(us)
		if after != share || share < 70 || used != 0 || len(kept) == 0 ||
			len(kept) != len(before) || kept[0] != before[0] {
			t.Errorf("share %d with rows %+v, before %d with %+v; %d used", after, kept, share,
				before, used)
		}
		if _, used, _ := rows(eu); used != 10 {
			t.Errorf("the other region has %d used", used)
		}
	})
}

func TestResetRefuses(t *testing.T) {
	d := documents.Parse(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		for _, name := range []string{"", "other"} {
			if _, err := n.Reset(t.Context(), name, "api",
				request("a").Descriptors); !errors.Is(err, rules.ErrNoSuchBucket) {
				t.Errorf("limit %q: %v", name, err)
			}
		}
		if _, err := n.Reset(t.Context(), "fixed-window", "api",
			map[string]string{"address": "x"}); !errors.Is(err, rules.ErrNoSuchBucket) {
			t.Errorf("no such key: %v", err)
		}
		var field *invalid.Field
		if _, err := n.Reset(t.Context(), "fixed-window", "",
			request("a").Descriptors); !errors.As(err, &field) || field.Name != "domain" {
			t.Errorf("no domain: %v", err)
		}
		if got, err := n.Reset(t.Context(), "fixed-window", "api",
			map[string]string{"account": "never seen"}); got != 0 || err != nil {
			t.Errorf("a bucket nobody used: %d, %v", got, err)
		}
		generation := n.Status().Generation
		c.flushAll("us")
		if _, err := n.Reset(t.Context(), "fixed-window", "api",
			request("a").Descriptors); err == nil {
			t.Error("a bucket was reset in a store that is lost")
		}
		c.within(time.Second, "the store to be opened anew",
			func() bool { return n.Status().Generation > generation })
		if got := n.series(t)["quotad_resets_total{limit=fixed-window}"]; got != 1 {
			t.Errorf("%v resets counted, one was done", got)
		}
	})
}

// A reset opens no cell that a loss has closed.
func TestResetAfterALoss(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		d := documents.Parse(t, 1, alone, limitOf(kind, 10, ", on_store_failure: deny"))
		oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
			generation := n.Status().Generation
			c.flushAll("us")
			n.check(t, request("a"))
			c.within(time.Second, "the store to be opened anew",
				func() bool { return n.Status().Generation > generation })
			if _, err := n.Reset(t.Context(), nameOf(kind), "api",
				request("a").Descriptors); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if got := n.check(t, request("a")); got.Allowed {
				t.Errorf("%s: admitted in the cell of the loss: %+v", kind, got)
			}
		})
	}
}
