package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// The kinds that can be charged always.
var owing = []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog,
	algorithms.TokenBucket}

var fourHundred = []string{"ap: {weight: 200}", "eu: {weight: 400}", "us: {weight: 400}"}

// asks returns whether a use may begin.
func (n *running) asks(t *testing.T, q admit.Request) bool {
	t.Helper()
	q.Question = true
	d, err := n.Check(t.Context(), q)
	suite.Must(t, err)
	return d.Allowed
}

// reports charges what a use cost.
func (n *running) reports(t *testing.T, q admit.Request, cost quantity.Units) admit.Decision {
	t.Helper()
	q.Cost = cost
	d, err := n.Report(t.Context(), q, true)
	suite.Must(t, err)
	return d
}

// Answers of 37 units are asked about before and charged afterwards, 20 of them at a time, in one of three
// regions. Once the limit is used up, each region says no within a second, and what was charged beyond the
// debt is no more than the limit.
func TestCostsKnownAfterwards(t *testing.T) {
	for _, kind := range owing {
		t.Run(string(kind), func(t *testing.T) {
			limit := fmt.Sprintf("name: tokens, algorithm: %s, limit: 1000, window: 1h, charge: always, lending_limit: 1", kind)
			started(t, documents.Parse(t, 1, fourHundred, limit), []string{"ap/n1", "eu/n1", "us/n1"}, func(t *testing.T, c *cluster) {
				us, q := c.running["us/n1"], request("a")
				var charged, owed quantity.Units
				flight := 0
				for tries := 0; tries < 200; tries++ {
					if us.asks(t, q) && flight < 20 {
						flight++
						continue
					}
					for ; flight > 0; flight-- {
						d := us.reports(t, q, 37)
						charged, owed = charged+37, owed+d.Owed
					}
					time.Sleep(100 * time.Millisecond)
				}
				if covered := charged - owed; charged < 1000 || covered > 1001 { // a token bucket is refilled by one
					t.Errorf("charged %d, of which %d did not fit: %d", charged, owed, covered)
				}
				for _, name := range []string{"ap/n1", "eu/n1", "us/n1"} {
					if n := c.running[name]; n.asks(t, q) {
						t.Errorf("%s says yes: %+v", name, n.check(t, q))
					}
				}
			})
		})
	}
}

// One use costs more than there is left in the world. The others cover what its region owes at once, although
// nobody asks there any more.
func TestWhatIsOwedIsCoveredAtOnce(t *testing.T) {
	for _, kind := range owing {
		t.Run(string(kind), func(t *testing.T) {
			limit := fmt.Sprintf("name: tokens, algorithm: %s, limit: 1000, window: 1h, charge: always, lending_limit: 1", kind)
			started(t, documents.Parse(t, 1, fourHundred, limit), []string{"ap/n1", "eu/n1", "us/n1"}, func(t *testing.T, c *cluster) {
				us, q := c.running["us/n1"], request("a")
				for range 39 { // slowly, so that no more is borrowed than is used
					us.reports(t, q, 10)
					time.Sleep(4 * time.Second)
				}
				time.Sleep(15 * time.Second) // what it used is no demand any more
				free := us.check(t, q).Remaining
				if !us.asks(t, q) {
					t.Fatal("something is left")
				}
				if d := us.reports(t, q, 800); d.Owed != 800-free || free >= 400 {
					t.Errorf("%d were left: %+v", free, d)
				}
				time.Sleep(2*oneWay + 400*time.Millisecond) // a round trip and two ticks
				for _, name := range []string{"ap/n1", "eu/n1", "us/n1"} {
					if c.running[name].asks(t, q) {
						t.Errorf("%s says yes", name)
					}
				}
			})
		})
	}
}

// Charges that nobody asked about, all of them denied, draw no units of other regions.
func TestAFloodOfChargesDrawsNothing(t *testing.T) {
	for _, kind := range owing {
		t.Run(string(kind), func(t *testing.T) {
			limit := fmt.Sprintf("name: tokens, algorithm: %s, limit: 1000, window: 1h, charge: always, lending_limit: 1", kind)
			started(t, documents.Parse(t, 1, fourHundred, limit), []string{"ap/n1", "eu/n1", "us/n1"}, func(t *testing.T, c *cluster) {
				us, q := c.running["us/n1"], request("a")
				eu, last := c.running["eu/n1"], admit.Decision{}
				uses := func() {
					if last = eu.check(t, q); !last.Allowed {
						t.Fatalf("eu is denied: %+v", last)
					}
					time.Sleep(50 * time.Millisecond)
				}
				for range 40 { // eu needs all that it is entitled to
					uses()
				}
				var owed quantity.Units
				for range 50 {
					owed += us.reports(t, q, 100).Owed
					uses()
				}
				if owed < 4000 || last.Share < 380 {
					t.Errorf("us owes %d; eu has %+v", owed, last)
				}
				if us.asks(t, q) {
					t.Error("us says yes although it owes")
				}
				time.Sleep(time.Second) // it was asked about: all of eu's covers what us owes
				if c.running["ap/n1"].asks(t, q) || eu.asks(t, q) {
					t.Error("somebody says yes although us owes")
				}
			})
		})
	}
}
