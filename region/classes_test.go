package region_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// shared is what a limit of 200 a second admitted of two classes.
type shared struct{ interactive, offered, batch int }

// plays has interactive ask for so many units a second in each region, and batch for 200 in each,
// all of them at one region's nodes if there is one region only. The first seconds, in which shares
// find their places, are not counted.
func plays(t *testing.T, c *cluster, asks map[string]int) (s shared) {
	const step, settles, lasts = 5 * time.Millisecond, 10 * time.Second, 30 * time.Second
	var all sync.WaitGroup
	var mu sync.Mutex
	for place, each := range map[string]int{"us/n1": asks["us"], "eu/n1": asks["eu"], "ap/n1": asks["ap"]} {
		n := c.running[place]
		if n == nil {
			n = c.running["us/n1"]
		}
		all.Go(func() {
			begun := time.Now()
			ask := func(class string) bool {
				q := request("a")
				q.Descriptors["priority"] = class
				d, err := n.Check(t.Context(), q)
				suite.Must(t, err)
				return d.Allowed
			}
			for i := 1; time.Since(begun) < settles+lasts; i++ {
				counted := time.Since(begun) >= settles
				for asked := each * (i - 1) / 200; asked < each*i/200; asked++ {
					admitted := ask("interactive")
					mu.Lock()
					if counted {
						s.offered++
						if admitted {
							s.interactive++
						}
					}
					mu.Unlock()
				}
				if ask("batch") && counted {
					mu.Lock()
					s.batch++
					mu.Unlock()
				}
				time.Sleep(step)
			}
		})
	}
	all.Wait()
	return s
}

// TestBatchBesideInteractive: batch floods all regions, of which it may use 0.4, while interactive
// asks for half of the limit, evenly or mostly in one region. Interactive is denied at most a
// hundredth of what one region alone, with the whole limit, admits of it.
func TestBatchBesideInteractive(t *testing.T) {
	suite.LongWithRace(t)
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog, algorithms.TokenBucket} {
		for name, tc := range map[string]struct {
			asks   map[string]int
			window int // seconds
		}{
			"as the split":                       {map[string]int{"us": 40, "eu": 40, "ap": 20}, 10},
			"in one region":                      {map[string]int{"us": 70, "eu": 20, "ap": 10}, 10},
			"in one region, windows of a second": {map[string]int{"us": 70, "eu": 20, "ap": 10}, 1},
		} {
			t.Run(fmt.Sprint(kind, " ", name), func(t *testing.T) {
				limit := fmt.Sprintf("name: calls, algorithm: %s, limit: %d, window: %ds, classes: {by: priority, batch: 0.4, interactive: 1}", kind, 200*tc.window, tc.window)
				var ours, pooled shared
				play := func(into *shared, regions []string, nodes ...string) {
					inBubble(t, nodes, func(t *testing.T, c *cluster) {
						for _, name := range nodes {
							region, _, _ := strings.Cut(name, "/")
							c.onTwin(region)
						}
						for _, name := range nodes {
							c.start(name, documents.Parse(t, 1, regions, limit))
						}
						c.meet()
						*into = plays(t, c, tc.asks)
					})
				}
				play(&ours, fourHundred, "ap/n1", "eu/n1", "us/n1")
				play(&pooled, []string{"us: {weight: 1}"}, "us/n1")
				lost := float64(max(pooled.interactive-ours.interactive, 0)) / float64(pooled.interactive)
				t.Logf("interactive %d of %d, one region %d: %.2f %% denied falsely; batch %d, one region %d", ours.interactive,
					ours.offered, pooled.interactive, 100*lost, ours.batch, pooled.batch)
				if lost > 0.01 {
					t.Errorf("%.2f %% of interactive is denied falsely", 100*lost)
				}
			})
		}
	}
}
