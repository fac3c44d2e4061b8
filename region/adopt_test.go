package region_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

var halves = []string{"us: {weight: 1}", "eu: {weight: 1}"}

func TestAdoptRefuses(t *testing.T) {
	second := "name: second, limit: 100, window: 1s"
	d := documents.Parse(t, 2, halves, second)
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		for name, tc := range map[string]struct {
			version int
			regions []string
			limit   string
			says    string
		}{
			"a lower version": {1, halves,
				"name: second, limit: 1000, window: 1s", "raise its version"},
			"a lower version of the same contents": {1, halves, second, "raise its version"},
			"the same version of other contents": {2, halves,
				"name: second, limit: 1000, window: 1s", "a higher version"},
		} {
			refused := documents.Parse(t, tc.version, tc.regions, tc.limit)
			err := n.Adopt(t.Context(), refused)
			if err == nil || !strings.Contains(err.Error(), tc.says) ||
				!strings.Contains(err.Error(), refused.Epoch().String()) {
				t.Errorf("%s: %v", name, err)
			}
			if got := n.check(t, request("a")); got.LimitUnits != 100 ||
				n.Status().Epoch != d.Epoch().String() {
				t.Errorf("%s: in force all the same: %+v", name, got)
			}
		}
		if err := n.Adopt(t.Context(), documents.Parse(t, 2, halves, second)); err != nil {
			t.Errorf("the document in force, once more: %v", err)
		}
	})
}

// A region that is alone has nobody to wait for.
func TestAdoptChangesLimitsAtOnce(t *testing.T) {
	oneNode(t, documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m"), func(t *testing.T, c *cluster, n *running) {
		if got, _ := n.drain(t, request("a"), 200); got != 100 {
			t.Fatalf("%d admitted, want 100", got)
		}
		for i, tc := range []struct {
			limit string
			// admitted further, in the same cell: raising or lowering a limit keeps the counts
			// of its buckets
			admitted int
			units    quantity.Units
		}{
			{"limit: 150, window: 1m", 50, 150},
			{"limit: 30, window: 1m", 0, 30},
			{"limit: 160, window: 1m", 10, 160},
			// Another algorithm or window is another bucket, beside which the old one is
			// charged until what it counts is over.
			{"algorithm: sliding_window_counter, limit: 160, window: 1m", 0, 160},
			{"algorithm: sliding_window_log, limit: 160, window: 1m", 0, 160},
			{"limit: 160, window: 59s", 0, 160},
			{"limit: 20, window: 1h", 0, 160},
		} {
			d := documents.Parse(t, i+2, alone, "name: minute, "+tc.limit)
			suite.Must(t, n.Adopt(t.Context(), d))
			got, last := n.drain(t, request("a"), 200)
			if got != tc.admitted || last.LimitUnits != tc.units {
				t.Errorf("%s: %d admitted, want %d; then %+v", tc.limit, got, tc.admitted, last)
			}
		}
		time.Sleep(10 * time.Minute) // what the earlier windows count is over
		if got, last := n.drain(t, request("a"), 200); got != 20 || last.LimitUnits != 20 {
			t.Errorf("later: %d admitted, want 20; then %+v", got, last)
		}
		if got := n.Status().Epoch; strings.Contains(got, "+") || !strings.HasPrefix(got, "8-") {
			t.Errorf("open at last: %s", got)
		}
	})
}

// A document that one region is given reaches the other. Until then the regions do not trade the
// limit that it changes, and each uses the lesser of what the two documents give it.
func TestADocumentReachesTheOtherRegion(t *testing.T) {
	limit := "name: second, limit: 100, window: 1s"
	twoRegions(t, documents.Parse(t, 1, halves, limit), func(t *testing.T, c *cluster, us, eu *running) {
		raised := documents.Parse(t, 2, halves, "name: second, limit: 120, window: 1s")
		suite.Must(t, us.Adopt(t.Context(), raised))
		if got, last := us.drain(t, request("a"), 200); got != 50 || last.LimitUnits != 120 {
			t.Errorf("us, at once: %d admitted, want 50; then %+v", got, last)
		}
		time.Sleep(2 * time.Second)
		for _, n := range c.running {
			if s := n.Status(); s.Epoch != raised.Epoch().String() || s.Peers[0].Degraded {
				t.Errorf("%s: %+v", n.name, s)
			}
		}
		nextCell(time.Second)
		for _, n := range []*running{us, eu} {
			if got, last := n.drain(t, request("a"), 200); got != 60 || last.LimitUnits != 120 {
				t.Errorf("%s: %d admitted, want 60; then %+v", n.name, got, last)
			}
		}
		before := us.counter(t, "units_borrowed")
		us.load(t, request("a"), 2, 2*time.Second) // three times its part
		if us.counter(t, "units_borrowed") == before {
			t.Error("nothing borrowed though both have the same document")
		}
	})
}

// A region that is new has nothing until those that shrink for it have acknowledged its document,
// even if it was the only one to be given that.
func TestANewRegionWaitsForTheOthers(t *testing.T) {
	limit := "name: second, limit: 100, window: 1s"
	three := []string{"us: {weight: 1}", "eu: {weight: 1}", "ap: {weight: 2}"}
	inBubble(t, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		old, newer := documents.Parse(t, 1, halves, limit), documents.Parse(t, 2, three, limit)
		us, eu := c.start("us/n1", old), c.start("eu/n1", old)
		c.meet()
		c.Network.Isolate("eu/n1", 30*time.Second) // it does not hear of the newer one
		suite.Must(t, us.Adopt(t.Context(), newer))
		c.bootstrap = true
		ap := c.start("ap/n1", newer)
		time.Sleep(5 * time.Second)
		for _, tc := range []struct {
			*running
			most int
		}{{us, 25}, {eu, 50}, {ap, 0}} { // ap is the last: when it was asked, us lends to it
			nextCell(time.Second)
			if got, last := tc.drain(t, request("a"), 200); got != tc.most {
				t.Errorf("%s, while eu is cut off: %d admitted, want %d; then %+v", tc.name, got, tc.most, last)
			}
		}
		time.Sleep(40 * time.Second)
		for n, units := range map[*running]quantity.Units{us: 25, eu: 25, ap: 50} {
			if got := n.check(t, request("a")); got.Entitlement != units {
				t.Errorf("%s, at last: %+v, want an entitlement of %d", n.name, got, units)
			}
		}
	})
}

// A node that knows its file alone, as a new one does, joins what is open in its region. It opens
// its file's document behind that.
func TestANewNodeJoinsWhatIsOpen(t *testing.T) {
	old := documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s")
	newer := documents.Parse(t, 2, halves, "name: second, limit: 100, window: 1s, weights: {us: 9, eu: 1}")
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		c.start("us/n1", old)
		n2 := c.start("us/n2", newer) // eu does not run
		want := old.Epoch().String() + "+" + newer.Epoch().String()
		if got := n2.tenure.Rules().Epoch; got != want {
			t.Errorf("open: %s, want %s", got, want)
		}
		if got := n2.check(t, request("a")); got.Entitlement != 50 {
			t.Errorf("%+v, want an entitlement of 50", got)
		}
	})
}

// A region that a document removes serves nothing, and says so. One that leaves it out is not taken.
func TestARegionThatLeftTheDocument(t *testing.T) {
	limit := "name: second, limit: 100, window: 1s"
	twoRegions(t, documents.Parse(t, 1, halves, limit), func(t *testing.T, c *cluster, us, eu *running) {
		without := documents.Parse(t, 2, []string{"eu: {weight: 1}"}, limit)
		if err := eu.Adopt(t.Context(), without); !errors.Is(err, barrier.ErrLeftOut) {
			t.Fatalf("us is left out without a word: %v", err)
		}
		suite.Must(t, eu.Adopt(t.Context(), documents.With(t, "removed: [us]", without)))
		time.Sleep(4 * time.Second)
		nextCell(time.Second)
		if got, last := us.drain(t, request("a"), 10); got != 0 {
			t.Errorf("us: %d admitted; then %+v", got, last)
		}
		if err := us.Ready(); err == nil || !strings.Contains(err.Error(), `removes region "us"`) {
			t.Errorf("us is ready: %v", err)
		}
		if got, last := eu.drain(t, request("a"), 200); got != 100 {
			t.Errorf("eu: %d admitted, want 100; then %+v", got, last)
		}
	})
}

// A region that begins with a document that leaves out another one, by a slip, does not start.
func TestARegionBeginsWithoutAnother(t *testing.T) {
	limit := "name: second, limit: 100, window: 1s"
	inBubble(t, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		for _, name := range []string{"us/n1", "eu/n1"} {
			c.start(name, documents.Parse(t, 1, halves, limit))
		}
		c.meet()
		begins := func(regions ...string) error {
			_, err := c.tryStart("ap/n1", documents.Parse(t, 2, regions, limit))
			return err
		}
		if err := begins("su: {weight: 1}", "eu: {weight: 1}", "ap: {weight: 1}"); !errors.Is(err, barrier.ErrLeftOut) {
			t.Fatalf("it started: %v", err)
		}
		if err := begins("us: {weight: 1}", "eu: {weight: 1}", "ap: {weight: 1}"); err != nil {
			t.Error(err)
		}
	})
}

// The first node of a region that adopts a document does so for the region. A node that has the
// older one decides nothing by it: it finds the newer one in the store, and then decides the
// request that showed it.
func TestAMateFindsTheDocumentInTheStore(t *testing.T) {
	const limit = "name: hour, limit: 100, window: 1h, on_store_failure: deny"
	lowered := documents.Parse(t, 2, alone,
		"name: hour, limit: 10, window: 1h, on_store_failure: deny")
	started(t, documents.Parse(t, 1, alone, limit), []string{"us/n1", "us/n2"},
		func(t *testing.T, c *cluster) {
			n1, n2 := c.running["us/n1"], c.running["us/n2"]
			suite.Must(t, n1.Adopt(t.Context(), lowered))
			if got := n2.check(t, request("a")); !got.Allowed || got.Remaining != 9 {
				t.Errorf("the mate, with the newer document: %+v", got)
			}
			if want := []string{"us/n2: 2 from the region's Redis"}; !slices.Equal(c.adopted, want) {
				t.Errorf("told of %q, want %q", c.adopted, want)
			}
			if err := n2.Adopt(t.Context(), documents.Parse(t, 2, alone, limit)); !errors.Is(err,
				barrier.ErrConflict) {
				t.Errorf("the mate took another document of the same version: %v", err)
			}
			suite.Must(t, n2.Adopt(t.Context(), lowered))
		})
}

// A request that was matched under the older document, but decided when the newer one is in force,
// is decided by the newer one's numbers.
func TestNothingIsDecidedByAnOlderDocument(t *testing.T) {
	const limit = "name: hour, window: 1h, on_store_failure: deny, limit: "
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		var held atomic.Pointer[chan struct{}] // what is sent waits for it
		var trips atomic.Int64
		n := c.startWatched("us/n1", documents.Parse(t, 1, alone, limit+"100"), func() {
			trips.Add(1)
			if adopted := held.Load(); adopted != nil {
				<-*adopted
			}
		})
		adopted := make(chan struct{})
		held.Store(&adopted)
		var others sync.WaitGroup
		for sent := int64(-1); trips.Load() != sent; { // until one more has to queue
			sent = trips.Load()
			others.Go(func() { n.check(t, request("b")) })
			synctest.Wait()
		}
		sent, decided := trips.Load(), make(chan admit.Decision, 1)
		go func() { decided <- n.check(t, cost("a", 50)) }()
		synctest.Wait()
		suite.Must(t, n.Adopt(t.Context(), documents.Parse(t, 2, alone, limit+"10")))
		if sent == 0 || trips.Load() != sent {
			t.Fatalf("%d round trips, %d before the request: the test shows nothing", trips.Load(),
				sent)
		}
		close(adopted)
		others.Wait()
		if d := <-decided; d.Allowed || d.Reason != admit.Never || d.LimitUnits != 10 {
			t.Errorf("decided: %+v", d)
		}
		if used := n.used(t, "hour", request("a")); used != 0 {
			t.Errorf("%d used", used)
		}
	})
}

// While the store cannot be used Adopt tries again, and the older document stays in force.
func TestAdoptWithoutTheStore(t *testing.T) {
	const limit = "name: second, limit: 100, window: 1s, on_store_failure: deny"
	old, raised := documents.Parse(t, 1, alone, limit), documents.Parse(t, 2, alone,
		"name: second, limit: 120, window: 1s, on_store_failure: deny")
	t.Run("lost and opened anew", func(t *testing.T) {
		oneNode(t, old, func(t *testing.T, c *cluster, n *running) {
			c.flushAll("us")
			adopted := make(chan error, 1)
			go func() { adopted <- n.Adopt(t.Context(), raised) }()
			time.Sleep(time.Second)
			n.check(t, request("a")) // finds out that the store was lost
			time.Sleep(time.Second)
			if err := <-adopted; err != nil || n.Status().Epoch != raised.Epoch().String() {
				t.Errorf("adopted: %v, %+v", err, n.Status())
			}
			nextCell(time.Second)
			if got := n.check(t, request("a")); !got.Allowed || got.LimitUnits != 120 {
				t.Errorf("decision %+v", got)
			}
		})
	})
	t.Run("out of reach", func(t *testing.T) {
		oneNode(t, old, func(t *testing.T, c *cluster, n *running) {
			c.loseStore("us")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := n.Adopt(ctx, raised); err == nil || n.Status().Epoch != old.Epoch().String() {
				t.Errorf("adopted: %v, %+v", err, n.Status())
			}
		})
	})
}

// A store that was lost is opened anew by Adopt too, without any request.
func TestAdoptOpensALostStore(t *testing.T) {
	old, raised := documents.Parse(t, 1, alone, "name: second, limit: 100, window: 1s"),
		documents.Parse(t, 2, alone, "name: second, limit: 120, window: 1s")
	started(t, old, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		c.flushAll("us")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.running["us/n1"].Adopt(ctx, raised); err != nil {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// After a loss a mate opened the store under a newer document, so it cannot be opened under ours.
// Only adopting the newer document helps, and it must.
func TestAdoptOpensAStoreUnderItsNewerDocument(t *testing.T) {
	old, raised := documents.Parse(t, 1, alone, "name: second, limit: 100, window: 1s"),
		documents.Parse(t, 2, alone, "name: second, limit: 120, window: 1s")
	started(t, old, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		c.flushAll("us")
		for _, name := range []string{"us/n1", "us/n2"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.running[name].Adopt(ctx, raised); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		// until nothing from before the loss counts
		time.Sleep(3 * time.Second)
		for _, name := range []string{"us/n1", "us/n2"} {
			if got := c.running[name].check(t, request("a")); !got.Allowed ||
				got.LimitUnits != 120 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}
