//go:build !race

package region_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/region/decide/admit"
)

const fencedLimit = "name: l, limit: 1000, window: 2s, lending_limit: 0"

// admits has two nodes ask for more than there is in one window, and wants what each gets.
func admits(t *testing.T, when string, us, eu *running, here, there int) {
	t.Helper()
	nextCell(2 * time.Second)
	gotUS, last := us.drain(t, request("a"), 1100)
	gotEU, other := eu.drain(t, request("a"), 1100)
	if gotUS != here || gotEU != there {
		t.Errorf("%s: us admitted %d, eu %d of 1,000, want %d and %d; then %v, %v", when, gotUS, gotEU, here, there,
			last.Reason, other.Reason)
	}
}

// fencedWhileCutOff has eu fence us, which is cut off and does not hear of it.
func fencedWhileCutOff(t *testing.T, f func(t *testing.T, c *cluster, us, eu *running)) {
	twoRegions(t, documents.Parse(t, 1, halves, fencedLimit), func(t *testing.T, c *cluster, us, eu *running) {
		c.Network.Isolate("us/n1", time.Hour)
		suite.Must(t, eu.Adopt(t.Context(), documents.With(t, "fenced: [us]", documents.Parse(t, 2, halves, fencedLimit))))
		time.Sleep(8 * time.Second)
		f(t, c, us, eu)
	})
}

// TestAFencedRegionReturns: us never heard that it was fenced. The document by which it returns gives
// it what it always had.
func TestAFencedRegionReturns(t *testing.T) {
	fencedWhileCutOff(t, func(t *testing.T, c *cluster, us, eu *running) {
		third := documents.Parse(t, 3, halves, fencedLimit)
		if err := eu.Adopt(t.Context(), third); !errors.Is(err, barrier.ErrUnfenced) || !strings.Contains(err.Error(), "returned: {us: 1}") {
			t.Errorf("the word is dropped: %v", err)
		}
		admits(t, "cut off", us, eu, 500, 1000) // fenced-alive
		back := documents.With(t, "returned: {us: 1}", third)
		suite.Must(t, us.Adopt(t.Context(), back))
		admits(t, "returned, and cut off", us, eu, 0, 1000)
		c.stop("us/n1")
		us = c.start("us/n1", documents.Parse(t, 1, halves, fencedLimit))
		admits(t, "started again", us, eu, 0, 1000)
		healed := time.Now()
		c.Network.HealAll()
		time.Sleep(time.Second)
		admits(t, "heard", us, eu, 0, 500)
		for us.check(t, request("b")).Allowed == false {
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("it serves %v after it is heard", time.Since(healed))
		admits(t, "later", us, eu, 500, 500)
		if s := us.Status(); s.Epoch != back.Epoch().String() || us.Ready() != nil {
			t.Errorf("open in us: %s; %v", s.Epoch, us.Ready())
		}
	})
}

// TestAFenceIsObeyed by a region in which a document is in force that does not know of it, and goes
// on after a restart. The others take no such document.
func TestAFenceIsObeyed(t *testing.T) {
	fencedWhileCutOff(t, func(t *testing.T, c *cluster, us, eu *running) {
		adopt := func(n *running, d *policy.Document) {
			suite.Must(t, n.Adopt(t.Context(), d))
		}
		adopt(us, documents.Parse(t, 9, halves, fencedLimit))
		c.Network.HealAll()
		time.Sleep(2 * time.Second)
		obeys := func(when string) {
			admits(t, when, us, eu, 0, 1000)
			if err := us.Ready(); err == nil || !strings.Contains(err.Error(), `region "us" is fenced, as region eu tells`) {
				t.Errorf("%s: us is ready: %v", when, err)
			}
		}
		obeys("heard")
		c.Network.Isolate("us/n1", time.Hour)
		c.stop("us/n1")
		us = c.start("us/n1", documents.Parse(t, 1, halves, fencedLimit))
		obeys("started again, cut off")
		c.Network.HealAll()
		adopt(us, documents.With(t, "returned: {us: 1}", documents.Parse(t, 10, halves, fencedLimit)))
		time.Sleep(8 * time.Second)
		admits(t, "returned", us, eu, 500, 500)
	})
}

// TestAFencedRegionUsesNothingThatOthersLend: eu hears that it is fenced, and callers go on to ask it.
// It admits nothing from then on, and asks the others for nothing.
func TestAFencedRegionUsesNothingThatOthersLend(t *testing.T) {
	const borrows = "name: l, limit: 1000, window: 2s, lending_limit: 1, on_exhausted: borrow"
	started(t, documents.Parse(t, 1, halves, borrows), []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu, q := c.running["us/n1"], c.running["eu/n1"], request("a")
		nextCell(2 * time.Second)
		for i := range 700 {
			if d := eu.check(t, q); !d.Allowed {
				t.Fatalf("eu, which has 500 and may borrow, is denied after %d: %+v", i, d)
			}
		}
		suite.Must(t, us.Adopt(t.Context(), documents.With(t, "fenced: [eu]", documents.Parse(t, 2, halves, borrows))))
		c.within(10*time.Second, "eu to hear of it", func() bool { return eu.Ready() != nil })
		before := eu.counter(t, "units_borrowed")
		for range 600 { // three windows
			if d := eu.check(t, q); d.Allowed || d.Reason != admit.ExceedsRegionCapacity || d.Entitlement != 0 {
				t.Fatalf("fenced: %+v", d)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if after := eu.counter(t, "units_borrowed"); after != before {
			t.Errorf("it borrowed %d units more", after-before)
		}
	})
}
