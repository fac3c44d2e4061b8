package region_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
)

// The test's bucket holds 100 tokens and gains one a second, so refill hardly matters here. Region
// us holds 40 of them. Its peers lend what they do not need, up to 95 % of theirs.
const tokens = "name: tokens, algorithm: token_bucket, limit: 60, window: 1m, burst: 100"

// beginCell sleeps until a cell of the buckets begins.
func beginCell() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }

// A burst larger than the region's part is admitted within a second. Together with what is left in
// the other regions it is never more than the bucket holds.
func TestBurstIsLent(t *testing.T) {
	started(t, documents.Parse(t, 1, threeRegions, tokens), []string{"us/n1", "eu/n1", "ap/n1"},
		func(t *testing.T, c *cluster) {
			us, q := c.running["us/n1"], request("a")
			beginCell()
			begun, total := time.Now(), 0
			for ; time.Since(begun) < time.Second; time.Sleep(20 * time.Millisecond) {
				for range 5 {
					if us.check(t, q).Allowed {
						total++
					}
				}
			}
			if total < 95 {
				t.Errorf("us admitted %d of 100 within a second; it holds 40 itself", total)
			}
			for _, name := range []string{"us/n1", "eu/n1", "ap/n1"} {
				more, _ := c.running[name].drain(t, q, 20)
				total += more
			}
			if most := 100 + int(time.Since(begun)/time.Second); total > most {
				t.Errorf("%d admitted in %v, the bucket holds 100 and gains 1 a second", total,
					time.Since(begun))
			}
			if us.Status().Exchange.BurstBorrowed < 55 ||
				c.running["eu/n1"].Status().Exchange.BurstLent < 35 {
				t.Errorf("us says it borrowed %d tokens, eu that it lent %d",
					us.Status().Exchange.BurstBorrowed,
					c.running["eu/n1"].Status().Exchange.BurstLent)
			}
		})
}

// If its limit lets it wait, one request may take more than the region's part at once.
func TestBurstWithinTheRequest(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, tokens+", on_exhausted: borrow",
		tokens+", domain: strict")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		beginCell()
		strict := cost("a", 60)
		strict.Domain = "strict"
		if got := us.check(t, strict); got.Reason != admit.ExceedsRegionCapacity ||
			got.RetryAfter >= 0 {
			t.Errorf("a limit that denies at once: %+v", got)
		}
		begun := time.Now()
		if got := us.check(t, cost("a", 60)); !got.Allowed || time.Since(begun) > 3*oneWay {
			t.Errorf("60 of a part of 40: %+v after %v", got, time.Since(begun))
		}
		begun = time.Now()
		if got := us.check(t, cost("a", 101)); got.Reason != admit.Never || time.Since(begun) > 0 {
			t.Errorf("more than the bucket holds: %+v after %v", got, time.Since(begun))
		}
		if got := us.check(t, cost("a", 50)); got.Allowed {
			t.Errorf("110 of 100 tokens: %+v", got)
		}
	})
}

// Lent tokens return at the end of the cell: those not spent by then are gone, and each region
// refills its own part.
func TestBurstGoesHome(t *testing.T) {
	started(t, documents.Parse(t, 1, threeRegions, tokens+", on_exhausted: borrow"),
		[]string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
			us, q := c.running["us/n1"], request("a")
			beginCell()
			if got := us.check(t, cost("a", 60)); !got.Allowed {
				t.Fatalf("nothing was lent: %+v", got)
			}
			cell := us.check(t, q).Cell
			time.Sleep(2 * time.Second)
			b, err := us.Bucket(t.Context(), "tokens", "api", q.Descriptors)
			if err != nil || b.Inspected.Cell <= cell || b.Inspected.Used+b.Inspected.Free != 40 ||
				b.Inspected.Free > 40 {
				t.Errorf("the bucket of us: %+v, %v; want it to hold its own 40", b.Inspected, err)
			}
			for _, name := range []string{"us/n1", "eu/n1", "ap/n1"} {
				c.Network.Isolate(name, time.Hour)
			}
			time.Sleep(3 * time.Minute)
			for name, part := range map[string]int{"us/n1": 40, "eu/n1": 40, "ap/n1": 20} {
				if admitted, last := c.running[name].drain(t, q, 110); admitted != part ||
					!last.Degraded {
					t.Errorf("%s alone: %d admitted, want its %d; then %+v", name, admitted, part,
						last)
				}
			}
		})
}
