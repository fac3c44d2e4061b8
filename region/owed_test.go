package region_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
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
	d, err := n.Report(t.Context(), q)
	suite.Must(t, err)
	return d
}

// Answers of 37 units are asked about before and charged afterwards, 20 of them at a time, in one region. Once
// the limit is used up, each region that is reached says no, and what was charged less what did not fit is no
// more than the limit. So it is if two of them are cut off from each other meanwhile.
func TestCostsKnownAfterwards(t *testing.T) {
	suite.LongWithRace(t)
	three := []string{"ap/n1", "eu/n1", "us/n1"}
	for _, kind := range owing {
		for _, tc := range []struct {
			name    string
			regions []string
			nodes   []string
			fields  string
			cut     bool
		}{
			{"three regions", fourHundred, three, "", false},
			{"three regions that borrow", fourHundred, three, ", on_exhausted: borrow", false},
			{"through a cut", fourHundred, three, "", true},
			{"through a cut, borrowing", fourHundred, three, ", on_exhausted: borrow", true},
			{"one region", []string{"us: {weight: 1}"}, three[2:], "", false},
		} {
			t.Run(string(kind)+" "+tc.name, func(t *testing.T) {
				limit := fmt.Sprintf("name: tokens, algorithm: %s, limit: 1000, window: 1h, charge: always, lending_limit: 1", kind) + tc.fields
				started(t, documents.Parse(t, 1, tc.regions, limit), tc.nodes, func(t *testing.T, c *cluster) {
					q := request("a")
					if tc.cut {
						c.Network.CutBoth("us/n1", "eu/n1", time.Hour)
						time.Sleep(5 * time.Second)
					}
					charged, owed := c.running["us/n1"].answers(t, q, 37, 20, 200)
					if tc.cut {
						c.Network.HealAll()
						time.Sleep(time.Second)
						more, didNotFit := c.running["us/n1"].answers(t, q, 37, 20, 200)
						charged, owed = charged+more, owed+didNotFit
					}
					if fitted := charged - owed; charged < 1000 || fitted > 1015 { // a token bucket is refilled
						t.Errorf("charged %d, of which %d did not fit: %d", charged, owed, fitted)
					}
					begun := time.Now()
					c.within(time.Minute, "every region to say no", func() bool {
						for _, name := range tc.nodes {
							if c.running[name].asks(t, q) {
								return false
							}
						}
						return true
					})
					t.Logf("charged %d, owed %d; all said no %v later", charged, owed, time.Since(begun))
				})
			})
		}
	}
}

// answers has so many uses of a cost be under way at a time, each asked about before and charged afterwards,
// and returns what they were charged, and what of that did not fit.
func (n *running) answers(t *testing.T, q admit.Request, cost quantity.Units, atOnce, tries int) (charged, owed quantity.Units) {
	flight := 0
	for range tries {
		if n.asks(t, q) && flight < atOnce {
			flight++
			continue
		}
		for ; flight > 0; flight-- {
			d := n.reports(t, q, cost)
			charged, owed = charged+cost, owed+d.Owed
		}
		time.Sleep(100 * time.Millisecond)
	}
	return charged, owed
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

// A store that lost its buckets is charged as soon as it knows again what a bucket had used. The answer says what
// did not fit of that, and not what did not fit the node's own part, which is nothing here.
func TestAReportAfterALoss(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: tokens, limit: 1000, window: 24h, charge: always, lending_limit: 1")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		n.reports(t, request("a"), 100)
		generation := n.Status().Generation
		c.flushAll("us")
		n.check(t, request("other"))
		c.within(time.Second, "the store to be opened anew", func() bool { return n.Status().Generation > generation })
		for key, used := range map[string]quantity.Units{"a": 100, "b": 0} {
			if d := n.reports(t, request(key), 800); !d.Allowed || d.Owed != 0 || d.Remaining != 200-used ||
				d.Reason != admit.WithinLimit {
				t.Errorf("%s: %+v", key, d)
			}
		}
	})
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

// TestReserveOrChargeAfterwards has 20 answers a second of 1 to 100 units, each under way for two seconds, of a
// limit of 10,000: either the most that an answer can be is reserved and settled, or what it was is charged
// afterwards. Reserved, the limit is never exceeded; charged afterwards, no answer is denied that would have
// fitted. It prints what each way costs.
func TestReserveOrChargeAfterwards(t *testing.T) {
	const limit, most = 10_000, 100
	for _, reserves := range []bool{true, false} {
		d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, fmt.Sprintf("name: tokens, limit: %d, window: 1h, charge: always", limit))
		oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
			random := rand.New(rand.NewPCG(1, 2))
			var used, debt, denied quantity.Units
			var under sync.WaitGroup
			var mu sync.Mutex
			for range 300 {
				time.Sleep(50 * time.Millisecond)
				units := 1 + quantity.Units(random.IntN(most))
				q := request("a")
				if q.Question = !reserves; reserves {
					q.Cost, q.Receipt = most, true
				}
				mu.Lock()
				if d := n.check(t, q); !d.Allowed {
					denied += units
				} else {
					used += units
					under.Go(func() {
						time.Sleep(2 * time.Second)
						if reserves {
							_, err := n.Settle(t.Context(), d.Receipt, units)
							suite.Must(t, err)
						} else {
							owed := n.reports(t, request("a"), units).Owed
							mu.Lock()
							debt += owed
							mu.Unlock()
						}
					})
				}
				mu.Unlock()
			}
			under.Wait()
			falsely := min(denied, max(limit-used, 0))
			t.Logf("reserves %v: used %d of %d, denied %d, %d of that would have fitted, owed %d", reserves, used, limit, denied, falsely, debt)
			if reserves && used > limit || !reserves && (falsely > 0 || debt != max(used-limit, 0)) {
				t.Errorf("used %d, owed %d, falsely denied %d", used, debt, falsely)
			}
		})
	}
}
