package region_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// ofLimit returns a request that concerns one limit of thousandLimits.
func ofLimit(i int) admit.Request {
	return admit.Request{Domain: "api", Descriptors: map[string]string{fmt.Sprintf("k%d", i): "a"}, Cost: 1}
}

// thousandLimits returns a document of a thousand limits of 100 a second, of which the first is
// another.
func thousandLimits(t *testing.T, version, first int) *policy.Document {
	t.Helper()
	all := make([]string, 1000)
	for i := range all {
		all[i] = fmt.Sprintf("name: l%d, key: [k%d], limit: 100, window: 1s", i, i)
	}
	all[0] = fmt.Sprintf("name: l0, key: [k0], limit: %d, window: 1s", first)
	return documents.Parse(t, version, []string{"us: {weight: 1}", "eu: {weight: 1}", "ap: {weight: 1}"}, all...)
}

// denials asks for units of a limit in three regions, more in us than its part and less than the
// limit in all, until ctx ends. It returns how many requests were denied.
func (c *cluster) denials(ctx context.Context, t *testing.T, q admit.Request) (denied int) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, every := range map[string]time.Duration{"us/n1": 16 * time.Millisecond, "eu/n1": 100 * time.Millisecond,
		"ap/n1": 100 * time.Millisecond} {
		asking.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(every) {
				if d, err := c.running[name].Check(t.Context(), q); err == nil && !d.Allowed {
					mu.Lock()
					denied++
					mu.Unlock()
				}
			}
		})
	}
	asking.Wait()
	return denied
}

// TestADocumentTakesTwoCellsAtMost: where all regions are within reach, a limit that is lowered
// holds as the new document says, and no other, within two cells and a second, and one that is
// raised within a round trip and a second. Of a thousand limits the others go on as if nothing had
// been changed: none of their requests is denied that was not before.
func TestADocumentTakesTwoCellsAtMost(t *testing.T) {
	suite.LongWithRace(t)
	const cell, roundTrip = time.Second, 2 * oneWay
	nodes := []string{"us/n1", "eu/n1", "ap/n1"}
	started(t, thousandLimits(t, 1, 100), nodes, func(t *testing.T, c *cluster) {
		asking := func(during func()) int {
			ctx, end := context.WithCancel(t.Context())
			denied := make(chan int)
			go func() { denied <- c.denials(ctx, t, ofLimit(7)) }()
			during()
			end()
			return <-denied
		}
		asking(func() { time.Sleep(10 * time.Second) }) // shares have moved to us
		before := asking(func() { time.Sleep(20 * time.Second) })
		// apply gives us a document and returns how long it takes until it alone is in force.
		apply := func(version, first int) (took time.Duration) {
			begun := time.Now()
			suite.Must(t, c.running["us/n1"].Adopt(t.Context(), thousandLimits(t, version, first)))
			for _, name := range nodes {
				n := c.running[name]
				c.within(time.Minute, name+" works under the new document alone", func() bool {
					d := n.tenure.Documents()
					return n.Status().Version == int64(version) && d.Held == 0
				})
			}
			return time.Since(begun)
		}
		version := 1
		during := asking(func() {
			begun := time.Now()
			for i := range 3 {
				time.Sleep(time.Duration(i) * 333 * time.Millisecond) // anywhere in a cell
				version++
				lowered := apply(version, 40)
				version++
				raised := apply(version, 100)
				t.Logf("lowered after %v, raised after %v", lowered, raised)
				if most := 2*cell + time.Second; lowered > most {
					t.Errorf("a lowered limit holds after %v, want %v at most", lowered, most)
				}
				if most := roundTrip + time.Second; raised > most {
					t.Errorf("a raised limit holds after %v, want %v at most", raised, most)
				}
			}
			time.Sleep(20*time.Second - time.Since(begun))
		})
		t.Logf("of a limit that does not change %d requests were denied in 20 s, and %d in 20 s with six documents", before, during)
		if during > before {
			t.Errorf("%d requests of another limit were denied, and %d before", during, before)
		}
	})
}

// TestQuietRegionsHearADocumentInHalfASecond: no region has had a request, so that they call each
// other once a second. A document that one of them is given is open in the others as soon as if they
// called each other twice a second.
func TestQuietRegionsHearADocumentInHalfASecond(t *testing.T) {
	document := func(version int) *policy.Document {
		return documents.Parse(t, version, threeRegions, fmt.Sprintf("name: second, limit: %d, window: 1s", 99+version))
	}
	started(t, document(1), []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		for version := 2; version < 12; version++ {
			time.Sleep(time.Minute + time.Duration(version)*100*time.Millisecond) // anywhere between two calls
			begun := time.Now()
			suite.Must(t, c.running["us/n1"].Adopt(t.Context(), document(version)))
			for _, name := range []string{"eu/n1", "ap/n1"} {
				for c.running[name].Status().Version != int64(version) && time.Since(begun) < time.Minute {
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(begun); took > time.Second/2 {
					t.Errorf("version %d is open in %s after %v", version, name, took)
				}
			}
		}
	})
}
