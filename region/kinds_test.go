package region_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// burstOf is a limit of a kind, with a burst of its own where the kind has one.
func burstOf(kind algorithms.Kind, units, burst int) string {
	if !kind.Bucket() {
		return limitOf(kind, units, "")
	}
	return limitOf(kind, units, fmt.Sprintf(", burst: %d", burst))
}

// Requests that a leaky bucket admits get turns at its rate. A denial of a full one says when there
// will be room.
func TestTurnsOfALeakyBucket(t *testing.T) {
	d := documents.Parse(t, 1, alone, burstOf(algorithms.LeakyBucket, 10, 5),
		"name: watch, algorithm: leaky_bucket, limit: 1, window: 10s, shadow: true")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		admitted := func(units quantity.Units, delay time.Duration, remaining quantity.Units) {
			t.Helper()
			got := n.check(t, cost("a", units))
			if !got.Allowed || got.Delay != delay || got.Remaining != remaining ||
				got.Algorithm != algorithms.LeakyBucket || got.RetryAfter != 0 {
				t.Errorf("%d units: %+v; want a delay of %v and %d remaining", units, got, delay,
					remaining)
			}
		}
		denied := func(units quantity.Units, retry time.Duration) {
			t.Helper()
			// Whoever looks is given no turn.
			if got, err := n.Peek(t.Context(), cost("a", units)); err != nil || got.Allowed || got.RetryAfter != retry ||
				got.Delay != 0 {
				t.Errorf("%d units: %+v, want to be told to wait %v", units, got, retry)
			}
		}
		admitted(1, 0, 4)
		admitted(2, time.Second, 2)
		admitted(1, 3*time.Second, 1)
		denied(2, time.Second)
		admitted(1, 4*time.Second, 0)
		denied(1, time.Second)
		time.Sleep(1500 * time.Millisecond)
		admitted(1, 3500*time.Millisecond, 0)
		denied(5, 4500*time.Millisecond)
		time.Sleep(4500 * time.Millisecond)
		admitted(5, 0, 0) // the sixth unit was done at this moment
		time.Sleep(time.Minute)
		admitted(1, 0, 4)
	})
}

// A decision, a denial too, says after which time the whole limit may be used again.
func TestResetAfterIsWhenTheLimitIsWhole(t *testing.T) {
	for kind, want := range map[algorithms.Kind]time.Duration{
		algorithms.FixedWindow: 9 * time.Second, algorithms.SlidingWindowCounter: 19 * time.Second,
		algorithms.SlidingWindowLog: 10 * time.Second, algorithms.TokenBucket: 2 * time.Second,
		algorithms.LeakyBucket: 2 * time.Second,
	} {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, alone, burstOf(kind, 10, 10))
			oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
				nextCell(10 * time.Second)
				if got := n.check(t, cost("a", 2)); !got.Allowed || got.ResetAfter != want {
					t.Errorf("admitted: %+v, want it whole after %v", got, want)
				}
				time.Sleep(time.Second)
				if got := n.check(t, cost("a", 10)); got.Allowed ||
					got.ResetAfter != want-time.Second {
					t.Errorf("denied: %+v, want it whole after %v", got, want-time.Second)
				}
				for _, at := range []time.Duration{want - time.Second - time.Microsecond,
					time.Microsecond} {
					time.Sleep(at)
					got, err := n.Peek(t.Context(), cost("a", 10))
					if err != nil || got.Allowed != (at == time.Microsecond) {
						t.Errorf("all of it: %+v, %v", got, err)
					}
				}
				if got := n.check(t, cost("untouched", 11)); got.Allowed || got.ResetAfter != 0 {
					t.Errorf("a key without use: %+v, want it whole now", got)
				}
			})
		})
	}
}

// A request that is sent again after the time that a denial says is admitted, if nothing else
// happens, and not a microsecond earlier.
func TestRetryAfterIsHonest(t *testing.T) {
	const denials = 12
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, alone, burstOf(kind, 10, 7))
			started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
				n, random := c.running["us/n1"], rand.New(rand.NewPCG(1, 2))
				peek := func(q admit.Request) bool {
					got, err := n.Peek(t.Context(), q)
					return err == nil && got.Allowed
				}
				most := int64(10)
				if kind.Bucket() {
					most = 7
				}
				for seen := 0; seen < denials; {
					time.Sleep(time.Duration(random.Int64N(900_000)) * time.Microsecond)
					q := cost("a", quantity.Units(1+random.Int64N(most)))
					got := n.check(t, q)
					if got.Allowed {
						continue
					}
					seen++
					if got.Reason != admit.OverLimit || got.RetryAfter <= 0 ||
						got.RetryAfter > 20*time.Second {
						t.Fatalf("%d units: %+v", q.Cost, got)
					}
					time.Sleep(got.RetryAfter - time.Microsecond)
					if peek(q) {
						t.Errorf("%d units are admitted before the %v that the denial says", q.Cost,
							got.RetryAfter)
					}
					time.Sleep(time.Microsecond)
					if !peek(q) {
						t.Errorf("%d units are not admitted after the %v that the denial says",
							q.Cost, got.RetryAfter)
					}
				}
			})
		})
	}
}

// A decision names its algorithm and what remains. For a cost that never fits it says so at once.
func TestDecisionsOfEachKind(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			whole := quantity.Units(100) // of which us has 40 %
			if kind.Bucket() {
				whole = 200
			}
			part := whole * 2 / 5
			beyond := admit.OverLimit // what others may lend
			if kind.Bucket() {        // which is no tokens for a request that does not wait
				beyond = admit.ExceedsRegionCapacity
			}
			oneNode(t, documents.Parse(t, 1, threeRegions, burstOf(kind, 100, 200)), func(t *testing.T, c *cluster, n *running) {
				for units, want := range map[quantity.Units]admit.Reason{1: admit.WithinLimit,
					part: admit.WithinLimit, part + 1: beyond,
					whole: admit.ExceedsRegionCapacity, whole + 1: admit.Never,
					1 << 51: admit.Never} {
					got, err := n.Peek(t.Context(), cost("a", units))
					if err != nil || got.Reason != want ||
						got.Allowed != (want == admit.WithinLimit) ||
						(got.RetryAfter < 0) != (want != admit.WithinLimit && want != admit.OverLimit) {
						t.Errorf("cost %d: %+v, %v; want %s", units, got, err, want)
					}
				}
				for _, units := range []quantity.Units{7, part - 7} {
					before := n.used(t, nameOf(kind), request("a"))
					got := n.check(t, cost("a", units))
					if !got.Allowed || got.Remaining != part-before-units ||
						got.Algorithm != kind || got.LimitUnits != 100 ||
						got.Window != 10*time.Second || got.Entitlement != 40 ||
						got.Share != 40 || got.At !=
						quantity.StoreTime(time.Now().UnixMicro()) {
						t.Errorf("cost %d: %+v", units, got)
					}
				}
				for units, want := range map[quantity.Units]admit.Reason{1: admit.OverLimit,
					part: admit.OverLimit, part + 1: beyond,
					whole + 1: admit.Never} {
					got := n.check(t, cost("a", units))
					if got.Allowed || got.Reason != want ||
						(got.RetryAfter < 0) != (want != admit.OverLimit) ||
						got.Remaining != 0 {
						t.Errorf("cost %d of none left: %+v, want %s", units, got, want)
					}
				}
			})
		})
	}
}

// A request to which limits of all kinds apply is charged to all of them or to none, whichever
// denies.
func TestLimitsOfAllKindsOnOneRequest(t *testing.T) {
	for _, narrow := range algorithms.Kinds {
		t.Run(string(narrow), func(t *testing.T) {
			var limits []string
			for _, kind := range algorithms.Kinds {
				units := 100
				if kind == narrow {
					units = 5
				}
				limits = append(limits, limitOf(kind, units, ""))
			}
			oneNode(t, documents.Parse(t, 1, alone, limits...), func(t *testing.T, c *cluster, n *running) {
				var spent quantity.Units
				for _, step := range []struct {
					units   quantity.Units
					allowed bool
				}{{2, true}, {4, false}, {1, true}, {3, false}, {2, true}, {1, false}, {1, false}} {
					got := n.check(t, cost("a", step.units))
					if got.Allowed != step.allowed || got.Limit != nameOf(narrow) ||
						got.Algorithm != narrow {
						t.Errorf("%d units after %d: %+v", step.units, spent, got)
					}
					if got.Allowed {
						spent += step.units
					}
					for _, kind := range algorithms.Kinds {
						if used := n.used(t, nameOf(kind), request("a")); used != spent {
							t.Errorf("%s: %d used, want %d", kind, used, spent)
						}
					}
				}
				if got := n.check(t, cost("a", 6)); got.Reason != admit.Never ||
					got.Limit != nameOf(narrow) {
					t.Errorf("more than one of the limits: %+v", got)
				}
				time.Sleep(20 * time.Second)
				if got := n.check(t, cost("a", 5)); !got.Allowed {
					t.Errorf("two windows later: %+v", got)
				}
			})
		})
	}
}

// In a cluster whose stores are gone, every algorithm serves the node's part, and a leaky_bucket
// delays nobody.
func TestStoreOutOfReachOfEachKind(t *testing.T) {
	var limits []string
	for _, kind := range algorithms.Kinds {
		limits = append(limits, limitOf(kind, 100, ", lending_limit: 0.5, domain: "+nameOf(kind)))
	}
	started(t, documents.Parse(t, 1, halves, limits...), []string{"us/n1", "us/n2"},
		func(t *testing.T, c *cluster) {
			c.loseStore("us")
			nextCell(10 * time.Second)
			for _, kind := range algorithms.Kinds {
				q, part := request("a"), 12 // floor((50 - 25) / 2)
				q.Domain = nameOf(kind)
				if kind.Sliding() {
					part = 6
				}
				for _, name := range []string{"us/n1", "us/n2"} {
					n := c.running[name]
					if admitted, last := n.drain(t, q, 50); admitted != part ||
						last.Reason != admit.StoreFailureLocal || last.RetryAfter != 9*time.Second {
						t.Errorf("%s, %s: %d admitted, want %d; then %+v", name, kind, admitted,
							part, last)
					}
				}
			}
		})
}
