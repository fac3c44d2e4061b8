package region_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// A region whose nodes all end together with its store starts from its checkpoints. Under load it
// then admits on top at most the use of the last second and 1 % of the entitlement, and after a
// rest nothing. So it is of a year of the calendar.
func TestNodesAndStoreEndTogether(t *testing.T) {
	limits := map[string]string{"a year": "name: long, limit: 1000, window: year, timezone: Asia/Tokyo, starts: 04-01, on_store_failure: deny"}
	for _, kind := range windows {
		limits[string(kind)] = long(kind, 1000, "")
	}
	for of, limit := range limits {
		for name, tc := range map[string]struct {
			rest   time.Duration
			excess quantity.Units
		}{
			"at rest":    {2500 * time.Millisecond, 0},
			"under load": {0, 100 + 10}, // a unit every 10 ms
		} {
			t.Run(fmt.Sprintf("%s, %s", of, name), func(t *testing.T) {
				d := documents.Parse(t, 1, alone, limit)
				started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
					q := request("a")
					admitted := sum(c.running["us/n2"].load(t, q, 1, 2330*time.Millisecond))
					admitted += sum(c.running["us/n1"].load(t, q, 1, 2330*time.Millisecond))
					time.Sleep(tc.rest)
					c.stop("us/n1")
					c.stop("us/n2")
					c.flushAll("us")
					n := c.start("us/n1", d)
					c.start("us/n2", d)
					c.meet() // until then a node cannot ask the other
					n.check(t, q)
					if lacking := admitted + 1 - n.state(t, q).Used; lacking < 0 ||
						lacking > tc.excess {
						t.Errorf("%d of %d used are not restored, at most %d may be", lacking,
							admitted, tc.excess)
					}
				})
			})
		}
	}
}

// When all nodes of a region ended with its store and the borrower cannot be asked, the journal
// says what was lent. If the journal was restored from an old copy, which the store noticed before,
// everything that may be lent counts as lent.
func TestRowsOfAJournal(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("an old copy: %v", old), func(t *testing.T) {
			d := documents.Parse(t, 1, halves, long(algorithms.FixedWindow, 2000,
				", lending_limit: 0.9, borrowing_limit: 0.3"))
			started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
				q := request("a")
				c.stop("us/n1")
				file := filepath.Join(c.Dir, "us-n1")
				aside, err := os.ReadFile(file)
				suite.Must(t, err)
				us := c.start("us/n1", d)
				c.meet()
				c.running["eu/n1"].borrows(t, "a")
				us.check(t, q)
				time.Sleep(2500 * time.Millisecond)
				want := us.state(t, q).Share
				if want == 1000 || want == 100 {
					t.Fatalf("share %d: the test shows nothing", want)
				}
				c.stop("us/n1")
				c.Network.CutBoth("us/n1", "eu/n1", time.Hour)
				if old {
					want = 100
					suite.Must(t, os.WriteFile(file, aside, 0o600))
					c.start("us/n1", d)
					c.stop("us/n1")
				}
				c.flushAll("us")
				us = c.start("us/n1", d)
				us.check(t, q)
				if got := us.state(t, q).Share; got != want {
					t.Errorf("share %d, want %d", got, want)
				}
			})
		})
	}
}

// A short window needs no checkpoint: none is written.
func TestShortWindowsAreNotWrittenDown(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 1000, window: 1m",
		long(algorithms.FixedWindow, 1000, ""))
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		n.load(t, request("a"), 1, 500*time.Millisecond)
		time.Sleep(3 * time.Second)
		for _, a := range n.tenure.Rules().Match(asked(request("a"))) {
			all, err := n.journal.Checkpoints(a.Bucket.ID)
			if err != nil || (len(all) > 0) != a.Bucket.Recovered {
				t.Errorf("%s: %+v, %v", a.Limit.Name, all, err)
			}
			if a.Bucket.Recovered && all[0].Used != 50 {
				t.Errorf("%s: written %+v, 50 used", a.Limit.Name, all)
			}
		}
	})
}

// If a node's journal can be neither read nor written, what the node saw is not lost.
func TestUseIsKnownWithoutTheJournal(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, long(algorithms.FixedWindow, 100, "")),
		[]string{"us/n1"}, func(t *testing.T, c *cluster) {
			n, q := c.running["us/n1"], request("a")
			for range 40 {
				n.check(t, q)
			}
			generation := n.Status().Generation
			_, b, err := n.tenure.Rules().Locate("long", q.Domain, q.Descriptors)
			suite.Must(t, err)
			c.delete("us", n, "long", q)
			suite.Must(t, n.journal.Close())
			if _, err := n.journal.Checkpoints(b.ID); err == nil {
				t.Fatal("the journal can be read: the test shows nothing")
			}
			if d := n.check(t, q); !d.Allowed || d.Remaining != 59 ||
				n.Status().Generation != generation {
				t.Errorf("%+v", d)
			}
		})
}
