package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestANodeThatRestartedTakesCopies: a node restarts, and one of the others is lost with the Redis. The third
// has a copy of that one, and tells the node that restarted.
func TestANodeThatRestartedTakesCopies(t *testing.T) {
	waits := 0
	const phases = 4
	for phase := range phases {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, long("fixed_window", 100, ""))
			inBubble(t, []string{"us/n1", "us/n2", "us/n3"}, func(t *testing.T, c *cluster) {
				_, _, n3 := c.start("us/n1", d), c.start("us/n2", d), c.start("us/n3", d)
				c.meet()
				nextCell(10 * time.Minute)
				n3.check(t, request("a"))
				time.Sleep(time.Duration(15+2*phase) * time.Second)
				c.stop("us/n1")
				c.stop("us/n3")
				c.flushAll("us")
				n1 := c.start("us/n1", d)
				for range 60 {
					if n1.check(t, request("a")).Reason == admit.WithinLimit {
						return
					}
					time.Sleep(time.Second)
				}
				waits++
			})
		})
	}
	if waits > 0 {
		t.Errorf("in %d of %d phases us/n3 is waited for, though us/n2 has a copy of all", waits, phases)
	}
}

// TestACopySaysNothingOfShortWindows: copies have use of long windows only. That a bucket of a minute was not
// used nobody can tell for a node that is lost.
func TestACopySaysNothingOfShortWindows(t *testing.T) {
	d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, "name: minute, limit: 100, window: 1m, on_store_failure: deny")
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		c.meet()
		nextCell(time.Minute)
		cell, used := n2.check(t, request("a")).Cell, 1
		used += n2.usesUp(t, "a")
		time.Sleep(3 * time.Second)
		c.stop("us/n2")
		c.flushAll("us")
		c.decides(n1, 5*time.Second, admit.Recovering, "b")
		for range 48 {
			if d := n1.check(t, request("a")); d.Allowed && d.Cell == cell {
				used++
			}
			time.Sleep(time.Second)
		}
		if used > 100 {
			t.Errorf("%d admitted of 100 in one window", used)
		}
	})
}

// TestManyNodesAreLost: the zone of three of six nodes is lost with the Redis, and each has a copy at one of the
// others. Gossip takes a while to notice the last of them, and then nobody is waited for.
func TestManyNodesAreLost(t *testing.T) {
	waits := 0
	for phase := range 2 {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, long("fixed_window", 100, ""))
			inBubble(t, []string{"us/n1", "us/n2", "us/n3", "us/n4", "us/n5", "us/n6"}, func(t *testing.T, c *cluster) {
				for i := range 6 {
					c.start(fmt.Sprintf("us/n%d", i+1), d)
				}
				n4 := c.running["us/n4"]
				c.meet()
				nextCell(10 * time.Minute)
				for _, n := range c.running {
					n.check(t, request("a"))
				}
				time.Sleep(5*time.Second + time.Duration(phase)*250*time.Millisecond)
				for _, name := range []string{"us/n1", "us/n2", "us/n3"} {
					n := c.running[name]
					delete(c.running, name)
					go func() { _ = n.Close() }()
				}
				time.Sleep(time.Millisecond)
				c.flushAll("us")
				for i := range 90 {
					if n4.check(t, request("a")).Reason == admit.WithinLimit {
						t.Logf("decided after %d s", i)
						return
					}
					time.Sleep(time.Second)
				}
				t.Logf("not decided in 90 s")
				waits++
			})
		})
	}
	if waits > 0 {
		t.Errorf("in %d of 2 phases the lost nodes are waited for, though each has a copy", waits)
	}
}
