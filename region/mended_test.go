package region

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// A node that lost its journal gives receipts that are not those it gave before.
func TestReceiptsAfterTheJournalIsLost(t *testing.T) {
	d := document(t, 1, alone, limitOf(algorithms.FixedWindow, 10, ""))
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		all := RefundedCharge{Limit: "fixed-window", Units: 3}
		for range 2 {
			n := c.start("us/n1", d)
			n.refunds(t, n.charged(t, cost("a", 3)), false, all)
			c.stop("us/n1")
			if err := os.Remove(filepath.Join(c.dir, "us-n1")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Nothing given back has a reason.
func TestNothingGivenBackHasAReason(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		started(t, document(t, 1, alone, limitOf(kind, 10, "")), []string{"us/n1"}, func(t *testing.T, c *cluster) {
			n := c.running["us/n1"]
			receipt := n.charged(t, cost("a", 3))
			if _, err := n.Reset(t.Context(), nameOf(kind), "api", request("a").Descriptors); err != nil {
				t.Fatal(err)
			}
			got, err := n.Refund(t.Context(), receipt)
			if err != nil || got.Charges[0].Units == 0 && got.Charges[0].Reason == "" {
				t.Errorf("%s: after a reset: %+v, %v", kind, got, err)
			}
		})
	}
}

// What is not known to be ours is not repeated at length.
func TestARefusalIsShort(t *testing.T) {
	n, r := sealing(t)
	r.Region = strings.Repeat("h", 60_000)
	if _, err := n.open(given(t, n, r)); err == nil || len(err.Error()) > 400 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// What is not sealed is not unpacked.
func TestAnUnsealedReceiptIsNotUnpacked(t *testing.T) {
	n, _ := sealing(t)
	body := []byte(strings.Repeat("\x32\x00", 1<<20)) // a million charges of nothing
	receipt := sealed("guessed", body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := n.open(receipt); err == nil {
		t.Error("taken")
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes of receipt, %d bytes of memory", len(receipt), after.TotalAlloc-before.TotalAlloc)
	if after.TotalAlloc-before.TotalAlloc > 3*uint64(len(receipt)) {
		t.Error("it was unpacked")
	}
}

// A limit of three over three regions: each asks for one, with time between them.
func TestHomeModeOneByOne(t *testing.T) {
	for _, kind := range algorithms.Kinds[:3] {
		d := document(t, 1, thirds, strings.Replace(limitOf(kind, 3, ", on_exhausted: borrow"), "10s", "1h", 1))
		started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
			for account := range 4 {
				q := request(fmt.Sprint(account))
				home, _ := c.homeOf(t, q)
				for _, name := range []string{"us/n1", "eu/n1", "ap/n1"} {
					if got := c.running[name].check(t, q); !got.Allowed {
						t.Errorf("%s: account %d at home in %s: %s has none of three units", kind, account, home.name, name)
					}
					time.Sleep(15 * time.Second)
				}
			}
		})
	}
}

// A region gets its own entitlement back from one that has been idle for ten seconds.
func TestARegionGetsItsOwnBack(t *testing.T) {
	d := document(t, 1, halves, "name: hour, limit: 100, window: 1h, on_exhausted: borrow")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu := c.running["us/n1"], c.running["eu/n1"]
		eu.check(t, cost("a", 10))
		time.Sleep(10 * time.Second)
		got := us.check(t, cost("a", 50))
		b, _ := eu.Bucket(t.Context(), "hour", "api", request("a").Descriptors)
		if !got.Allowed {
			t.Errorf("us is denied the 50 it is entitled to: share %d; eu, idle, has used %d of a share of %d", got.Share, b.Inspected.Used, b.Inspected.Share)
		}
	})
}
