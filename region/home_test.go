package region_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

var thirds = []string{"us: {weight: 1}", "eu: {weight: 1}", "ap: {weight: 1}"}

// homeOf returns the node of the region that is a key's home under the only limit, and the other
// nodes.
func (c *cluster) homeOf(t *testing.T, q admit.Request) (home *running, away []*running) {
	t.Helper()
	for _, n := range c.running {
		switch f := n.tenure.Rules().Match(q.Domain, q.Descriptors)[0].Target.Terms.Entitlement; f {
		case 0:
			away = append(away, n)
		case 3:
			home = n
		default:
			t.Fatalf("%s is entitled to %d", n.name, f)
		}
	}
	if home == nil || len(away) != 2 {
		t.Fatalf("not in home mode: home %v, %d others", home, len(away))
	}
	return home, away
}

// homeKinds are the kinds whose few units other regions than the home can borrow, with the fewest
// of three units that one region must get in six tries. Units of a log and a bucket may be lost on
// the way, because they are borrowed for a cell of a second.
var homeKinds = map[algorithms.Kind]int{algorithms.FixedWindow: 3,
	algorithms.SlidingWindowCounter: 2, algorithms.SlidingWindowLog: 1, algorithms.TokenBucket: 1}

// TestHomeModeServes: a cluster serves a limit of fewer than two units for each region.
func TestHomeModeServes(t *testing.T) {
	suite.LongWithRace(t)
	for kind, least := range homeKinds {
		t.Run(string(kind), func(t *testing.T) {
			d := documents.Parse(t, 1, thirds, limitOf(kind, 3, ", on_exhausted: borrow"))
			started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
				time.Sleep(time.Until(time.Now().Truncate(10 * time.Second).Add(10 * time.Second)))
				c.servesWhoeverAsks(t, least)
				c.servesAllAtOnce(t, request("all"))
				c.servesAtHomeAlone(t, request("cut"))
			})
		})
	}
}

// Whichever region asks gets the few units. After they are gone no region does.
func (c *cluster) servesWhoeverAsks(t *testing.T, least int) {
	homes := map[string]bool{}
	for account := range 4 {
		q := request(fmt.Sprint(account))
		home, away := c.homeOf(t, q)
		homes[home.name] = true
		admitted := 0
		for range 6 {
			if got := away[0].check(t, q); got.Allowed {
				admitted++
			}
		}
		if admitted > 3 || admitted < least {
			t.Errorf("account %d at home in %s: %d of 3 units were had in six tries at %s", account,
				home.name, admitted, away[0].name)
		}
		for _, n := range c.running {
			if n.check(t, q).Allowed {
				admitted++
			}
		}
		if admitted > 3 {
			t.Errorf("account %d at home in %s: %d admitted of 3", account, home.name, admitted)
		}
	}
	if len(homes) < 2 {
		t.Errorf("all accounts are at home in %v", homes)
	}
}

// However many requests ask for the few units at once, they get no more than there are.
func (c *cluster) servesAllAtOnce(t *testing.T, q admit.Request) {
	var admitted atomic.Int64
	for range 3 {
		var callers sync.WaitGroup
		for _, n := range c.running {
			for range 3 {
				callers.Go(func() {
					if n.check(t, q).Allowed {
						admitted.Add(1)
					}
				})
			}
		}
		callers.Wait()
		time.Sleep(time.Second)
	}
	if got := admitted.Load(); got == 0 || got > 3 {
		t.Errorf("%d admitted of 3", got)
	}
}

// On a cut only the home region serves a key, with the whole limit. The other regions say so, and
// that they are degraded.
func (c *cluster) servesAtHomeAlone(t *testing.T, q admit.Request) {
	home, away := c.homeOf(t, q)
	c.Network.Isolate(home.name, time.Hour)
	for _, after := range []time.Duration{0, 5 * time.Second} {
		time.Sleep(after)
		for _, n := range away {
			if got := n.check(t, q); got.Allowed || got.Entitlement != 0 || got.Share != 0 ||
				got.Degraded != (after > 0) {
				t.Errorf("%s, %v after the cut: %+v", n.name, after, got)
			}
		}
	}
	if admitted, last := home.drain(t, q, 10); admitted != 3 {
		t.Errorf("%s, at home: %d admitted, then %+v", home.name, admitted, last)
	}
}

// A limit of three over three regions: each asks for one, with time between them.
func TestHomeModeOneByOne(t *testing.T) {
	suite.LongWithRace(t)
	for _, kind := range algorithms.Kinds[:3] {
		d := documents.Parse(t, 1, thirds,
			strings.Replace(limitOf(kind, 3, ", on_exhausted: borrow"), "10s", "1h", 1))
		started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
			for account := range 4 {
				q := request(fmt.Sprint(account))
				home, _ := c.homeOf(t, q)
				for _, name := range []string{"us/n1", "eu/n1", "ap/n1"} {
					if got := c.running[name].check(t, q); !got.Allowed {
						t.Errorf("%s: account %d at home in %s: %s has none of three units", kind,
							account, home.name, name)
					}
					time.Sleep(15 * time.Second)
				}
			}
		})
	}
}

// TestHomeModeByDefault: a region that is not a key's home answers its first request with what it
// borrows, although the limit does not say so. When all is used worldwide it says so, and when to
// come again. A limit that says deny does not wait.
func TestHomeModeByDefault(t *testing.T) {
	suite.LongWithRace(t)
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.TokenBucket} {
		for _, deny := range []string{"", ", on_exhausted: deny"} {
			d := documents.Parse(t, 1, thirds, strings.Replace(limitOf(kind, 3, deny), "10s", "1m", 1))
			started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
				c.meet()
				nextCell(time.Minute)
				q := request("1")
				_, away := c.homeOf(t, q)
				begun := time.Now()
				got := away[0].check(t, q)
				if waited := time.Since(begun); deny != "" {
					if got.Allowed || got.Reason != admit.OverLimit || waited > 5*time.Millisecond {
						t.Errorf("%s%s: the first request, after %s: %+v", kind, deny, waited, got)
					}
					return
				}
				if !got.Allowed {
					t.Fatalf("%s: the first request: %+v", kind, got)
				}
				c.within(20*time.Second, "all is used", func() bool {
					got = away[1].check(t, q)
					return !got.Allowed
				})
				cell := d.Limits[0].Cell()
				if got.Reason != admit.OverLimit || got.RetryAfter <= 0 || got.RetryAfter > cell {
					t.Errorf("%s: all is used: %+v", kind, got)
				}
				for _, n := range away {
					c.Network.Isolate(n.name, time.Hour)
				}
				time.Sleep(5 * time.Second)
				if got = away[1].check(t, q); got.Allowed || got.Reason != admit.OverLimit || got.RetryAfter <= 0 ||
					got.RetryAfter > time.Minute || !got.Degraded {
					t.Errorf("%s: the home is out of reach: %+v", kind, got)
				}
			})
		}
	}
}
