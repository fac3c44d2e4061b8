package region_test

import (
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/store"
)

// alone is a world of one region.
var alone = []string{"us: {weight: 1}"}

func TestNodeAlone(t *testing.T) {
	d := documents.Parse(t, 3, alone, "name: second, limit: 5, window: 1s")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		suite.Must(t, n.Ready())
		s := n.Status()
		if s.Region != "us" || s.Node != "n1" || s.Epoch != d.Epoch().String() ||
			s.Generation == 0 || s.NotReady != nil ||
			len(s.Peers) != 0 || !slices.Equal(s.Members, []string{"us/n1"}) {
			t.Errorf("status %+v", s)
		}
		nextCell(time.Second)
		for i := range uint64(5) {
			got := n.check(t, request("a"))
			if !got.Allowed || got.Reason != admit.WithinLimit ||
				got.Remaining != quantity.Units(4-i) || got.Sequence != i+1 ||
				got.Limit != "second" ||
				got.LimitUnits != 5 || got.Window != time.Second ||
				got.ResetAfter != 900*time.Millisecond || got.RetryAfter != 0 ||
				got.Node != "n1" || got.Region != "us" || got.Entitlement != 5 || got.Share != 5 ||
				got.Degraded ||
				got.At != quantity.StoreTime(time.Now().UnixMicro()) ||
				got.Cell != quantity.Cell(time.Now().Unix()) {
				t.Fatalf("decision %d: %+v", i, got)
			}
		}
		if got := n.check(t, request("a")); got.Allowed || got.Reason != admit.OverLimit ||
			got.RetryAfter != 900*time.Millisecond || got.Remaining != 0 {
			t.Errorf("the sixth: %+v", got)
		}
		if got := n.check(t, request("b")); !got.Allowed || got.Remaining != 4 {
			t.Errorf("another account: %+v", got)
		}
		time.Sleep(900 * time.Millisecond)
		if got := n.check(t, request("a")); !got.Allowed || got.Remaining != 4 {
			t.Errorf("the next cell: %+v", got)
		}
	})
}

func TestPeekChargesNothing(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: second, limit: 5, window: 1s")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		nextCell(time.Second)
		q := request("a")
		q.Cost = 3
		for range 3 {
			if got, err := n.Peek(t.Context(), q); err != nil || !got.Allowed ||
				got.Remaining != 2 {
				t.Errorf("peek: %+v, %v", got, err)
			}
		}
		n.check(t, q)
		if got, err := n.Peek(t.Context(), q); err != nil || got.Allowed || got.Remaining != 2 ||
			got.Reason != admit.OverLimit {
			t.Errorf("peek: %+v, %v", got, err)
		}
		if got := n.check(t, request("a")); !got.Allowed || got.Remaining != 1 {
			t.Errorf("check: %+v", got)
		}
	})
}

func TestRequestsOfNoLimit(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: second, limit: 5, window: 1s",
		"name: pro, limit: 5, window: 1s, match: {plan: pro}")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		for name, q := range map[string]admit.Request{
			"another domain": {Domain: "web", Descriptors: request("a").Descriptors, Cost: 1},
			"another key": {Domain: "api", Descriptors: map[string]string{"address": "a"},
				Cost: 1},
			"no descriptors": {Domain: "api", Cost: 1 << 51},
			"another key case": {Domain: "api", Descriptors: map[string]string{"Account": "a"},
				Cost: 1},
		} {
			got := n.check(t, q)
			if !got.Allowed || got.Reason != admit.NoLimit || got.Limit != "" ||
				got.Sequence == 0 || got.Node != "n1" || got.Region != "us" || got.Cell != 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}

func TestCostsAboveTheEntitlement(t *testing.T) {
	started(t, documents.Parse(t, 1, []string{"us: {weight: 40}", "eu: {weight: 60}"},
		"name: second, limit: 100, window: 1s"), []string{"us/n1"},
		func(t *testing.T, c *cluster) {
			n := c.running["us/n1"]
			for cost, want := range map[quantity.Units]admit.Reason{40: admit.WithinLimit,
				41: admit.OverLimit, 97: admit.OverLimit, 98: admit.ExceedsRegionCapacity, 101: admit.Never,
				1 << 51: admit.Never} {
				q := request("a")
				q.Cost = cost
				got, err := n.Peek(t.Context(), q)
				if err != nil || got.Reason != want || got.Allowed != (cost == 40) ||
					(got.RetryAfter < 0) != (cost > 97) {
					t.Errorf("cost %d: %+v, %v", cost, got, err)
				}
			}
			q := request("a")
			q.Cost = 0
			var field *invalid.Field
			if _, err := n.Check(t.Context(), q); !errors.As(err, &field) || field.Name != "cost" {
				t.Errorf("cost 0: %v", err)
			}
		})
}

// A denial spends nothing on the other limits of the request. Shadow limits deny nothing.
func TestSeveralLimits(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: wide, limit: 10, window: 1s",
		"name: narrow, key: [account, address], limit: 3, window: 1s",
		"name: watch, limit: 2, window: 1s, shadow: true")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		nextCell(time.Second)
		both := admit.Request{Domain: "api", Descriptors: map[string]string{"account": "a",
			"address": "x"}, Cost: 1}
		for i := range 6 {
			got := n.check(t, both)
			if got.Allowed != (i < 3) || got.Limit != "narrow" ||
				(len(got.Shadowed) > 0) != (i >= 2) {
				t.Errorf("request %d: %+v", i, got)
			}
		}
		if got, _ := n.drain(t, request("a"), 20); got != 7 {
			t.Errorf("the wide limit alone: %d more, want 7", got)
		}
	})
}

// bubbleGoroutines returns the stacks of the goroutines of the caller's bubble.
func bubbleGoroutines(t *testing.T) []string {
	t.Helper()
	buf := make([]byte, 8<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	bubble := regexp.MustCompile(`synctest bubble \d+`).FindString(all[0])
	if bubble == "" {
		t.Fatalf("not in a bubble: %s", all[0])
	}
	return slices.DeleteFunc(all, func(stack string) bool {
		head, _, _ := strings.Cut(stack, "\n")
		return !strings.Contains(head+"]", bubble+"]")
	})
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: second, limit: 100, window: 1s")
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		before := len(bubbleGoroutines(t))
		for _, name := range []string{"us/n1", "us/n2", "eu/n1"} {
			c.start(name, d)
		}
		c.meet()
		var callers sync.WaitGroup
		for _, n := range c.running {
			callers.Go(func() { n.load(t, request("a"), 3, 2*time.Second) })
		}
		callers.Wait()
		c.Network.Isolate("eu/n1", time.Hour) // calls under way do not hold anybody up
		time.Sleep(time.Second)
		for _, n := range c.running {
			suite.Must(t, n.Close(), n.Close())
		}
		for _, stack := range bubbleGoroutines(t) {
			if regexp.MustCompile(
				`quotad/region(/admit|/rights|/tenure)?\.\(\*\w+\)`).MatchString(stack) {
				t.Errorf("a closed node still works:\n%s", stack)
			}
		}
		c.Network.HealAll()
		synctest.Wait()
		if left := bubbleGoroutines(t); len(left) > before {
			t.Errorf("%d goroutines, %d before:\n%s", len(left), before, strings.Join(left, "\n\n"))
		}
	})
}

// No request waits for a node that is closed, whether it came before or after.
func TestCheckOnAClosedNode(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: second, limit: 5, window: 1s")
	oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
		c.stop("us/n1")
		if _, err := n.Check(t.Context(), request("a")); !errors.Is(err, admit.ErrClosed) {
			t.Errorf("check: %v", err)
		}
		if _, err := n.Peek(t.Context(), request("a")); !errors.Is(err, admit.ErrClosed) {
			t.Errorf("peek: %v", err)
		}
		if err := n.Adopt(t.Context(),
			documents.Parse(t, 2, alone, "name: second, limit: 6, window: 1s")); !errors.Is(err,
			admit.ErrClosed) {
			t.Errorf("adopt: %v", err)
		}
	})
	bubble.Test(t, func(t *testing.T) {
		n := region.Unstarted(t, 1, documents.Parse(t, 1, region.HereAndThere,
			"name: second, limit: 5, window: 1s"))
		waits := make(chan error)
		go func() {
			_, err := n.Check(t.Context(), request("a"))
			waits <- err
		}()
		synctest.Wait()
		n.Ends()
		if err := <-waits; !errors.Is(err, admit.ErrClosed) {
			t.Errorf("a request that waited: %v", err)
		}
	})
}

func TestLeaveTellsTheOthers(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: second, limit: 100, window: 1s")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		suite.Must(t, c.running["eu/n1"].Leave(t.Context()))
		c.stop("eu/n1")
		c.within(time.Second, "the other to be gone", func() bool {
			return slices.Equal(c.running["us/n1"].Members(), []string{"us/n1"})
		})
	})
}

// Two nodes with one Redis, each with its own journal, are one region.
func TestTwoNodesOfOneRegionAdmitTheShare(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: hour, limit: 600, window: 1h")
	started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		var admitted atomic.Int64
		var callers sync.WaitGroup
		for _, n := range c.running {
			for range 8 {
				callers.Go(func() {
					for range 40 {
						if n.check(t, request("a")).Allowed {
							admitted.Add(1)
						}
					}
				})
			}
		}
		callers.Wait()
		if got := admitted.Load(); got != 300 {
			t.Errorf("640 requests: %d admitted, want the region's 300", got)
		}
		for name, n := range c.running {
			b, err := n.Bucket(t.Context(), "hour", "api", request("a").Descriptors)
			if err != nil || b.Terms.Entitlement != 300 || b.Inspected.Used != 300 ||
				b.Inspected.Share != 300 {
				t.Errorf("%s: bucket %+v, %v", name, b, err)
			}
		}
	})
}

// Both nodes of a region borrow for it, and both of the other lend: together never more than the
// limit.
func TestNodesOfARegionBorrowTogether(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s")
	started(t, d, []string{"us/n1", "us/n2", "eu/n1", "eu/n2"}, func(t *testing.T, c *cluster) {
		nextCell(time.Second)
		var mu sync.Mutex
		total, us := map[int64]quantity.Units{}, map[int64]quantity.Units{}
		var callers sync.WaitGroup
		for name, n := range c.running {
			units := 1
			if strings.HasPrefix(name, "eu/") {
				units = 0
			}
			callers.Go(func() {
				// From the third second on the lenders want some back.
				admitted := []map[int64]quantity.Units{n.load(t, request("a"), units,
					3*time.Second), n.load(t, request("a"), 1, 3*time.Second)}
				mu.Lock()
				defer mu.Unlock()
				for _, cells := range admitted {
					for cell, sum := range cells {
						total[cell] += sum
						if units > 0 {
							us[cell] += sum
						}
					}
				}
			})
		}
		callers.Wait()
		borrowed := false
		for cell, sum := range total {
			borrowed = borrowed || us[cell] > 50
			if sum > 100 {
				t.Errorf("cell %d: %d admitted, the limit is 100", cell, sum)
			}
		}
		if !borrowed {
			t.Errorf("us never had more than its 50: %v", us)
		}
	})
}

func TestStartRefuses(t *testing.T) {
	const second = "name: second, limit: 100, window: 1s"
	d := documents.Parse(t, 1, threeRegions, second)
	for name, tc := range map[string]struct {
		d     *policy.Document
		spoil func(c *cluster)
		says  string
	}{
		"a region that the document does not have": {documents.Parse(t, 1, alone,
			"name: second, limit: 100, window: 1s"), nil, `has no region "eu"`},
		"the Redis of another region": {d, func(c *cluster) {
			c.servers["eu"], c.twins["eu"] = c.servers["us"], c.twins["us"]
			c.start("us/n1", d)
		}, "give each region a Redis of its own"},
		"a Redis that is not there": {d, func(c *cluster) {
			c.loseStore("eu")
		}, "check that it runs"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, []string{"us/n1", "eu/n1", "eu/n2"}, func(t *testing.T, c *cluster) {
				c.alone = true // the first seed is not there
				if tc.spoil != nil {
					tc.spoil(c)
				}
				if _, err := c.tryStart("eu/n1", tc.d); err == nil || !strings.Contains(err.Error(),
					tc.says) {
					t.Errorf("error %v, want %q", err, tc.says)
				}
			})
		})
	}
}

// A node with an old file does not bring it back, and one whose file contradicts what is open in
// its region passes over the file.
func TestStartPassesOverTheFile(t *testing.T) {
	const second, lesser = "name: second, limit: 100, window: 1s", "name: second, limit: 10, window: 1s"
	old := documents.Parse(t, 1, threeRegions, second)
	for name, before := range map[string]func(c *cluster) *policy.Document{
		"a document older than the node worked under": func(c *cluster) *policy.Document {
			newer := documents.Parse(c.t, 2, threeRegions, second)
			suite.Must(c.t, c.start("eu/n1", old).Adopt(c.t.Context(), newer))
			c.stop("eu/n1")
			return newer
		},
		"a document older than its region works under": func(c *cluster) *policy.Document {
			newer := documents.Parse(c.t, 2, threeRegions, second)
			c.start("eu/n2", newer)
			return newer
		},
		"another document of the version its region works under": func(c *cluster) *policy.Document {
			other := documents.Parse(c.t, 1, threeRegions, lesser)
			c.start("eu/n2", other)
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, []string{"us/n1", "eu/n1", "eu/n2"}, func(t *testing.T, c *cluster) {
				c.alone = true // the first seed is not there
				open := before(c)
				n, err := c.tryStart("eu/n1", old)
				suite.Must(t, err)
				if got := n.Status().Epoch; got != open.Epoch().String() {
					t.Errorf("works under %s, want %s", got, open.Epoch())
				}
			})
		})
	}
}

// TestNoStartWithoutRights: if a node's Redis user may not do all that scripts do, the node does
// not start, and nothing is charged.
func TestNoStartWithoutRights(t *testing.T) {
	t.Parallel()
	server := fixtures.Process(t)
	admin := fixtures.Operator(t, server)
	c := newCluster(t, t.TempDir(), "here/n1")
	c.servers["here"] = &servers.Server{URL: strings.Replace(server.URL, "://", "://node:horse@", 1)}
	defer c.close()
	d := documents.Parse(t, 1, region.HereAndThere, "name: hour, limit: 100, window: 1h")
	rights := func(rules string) {
		args := []any{"ACL", "SETUSER", "node", "reset", ">horse"}
		for _, rule := range strings.Fields(rules) {
			args = append(args, rule)
		}
		suite.Must(t, admin.Do(t.Context(), args...).Err())
	}
	for _, right := range []string{"+set", "+hdel", "+pexpireat", "+del"} {
		rights(strings.Replace(store.MinimalACL, right+" ", "", 1))
		if _, err := c.tryStart("here/n1", d); err == nil || !strings.Contains(err.Error(),
			"lacks the rights "+right) {
			t.Fatalf("without %s: %v", right, err)
		}
		if keys := admin.Keys(t.Context(), "*:token").Val(); len(keys) != 0 {
			t.Errorf("without %s the store was opened: %v", right, keys)
		}
	}
	rights(strings.Replace(store.MinimalACL, "+hkeys ", "", 1)) // it does not learn of other nodes
	n := c.start("here/n1", d)
	if since := n.config.Journal.WholeSince(); since == 0 {
		t.Error("a node that may not hear of others says that nobody used anything before it")
	}
	c.loseJournal("here/n1")
	rights(store.MinimalACL)
	n = c.start("here/n1", d)
	if got := n.check(t, request("a")); got.Reason != admit.WithinLimit {
		t.Errorf("with all rights: %+v", got)
	}
}

func TestNotReadyBeforeTheStoreIsOpen(t *testing.T) {
	n := region.Unstarted(t, 1, documents.Parse(t, 1, region.HereAndThere, "name: second, limit: 5, window: 1s"))
	if err := n.Ready(); !errors.Is(err, store.ErrUnknownStore) {
		t.Errorf("ready: %v", err)
	}
}
