package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestAZoneThatIsBackUnderItsNames: the Redis and one of two nodes are lost together. The node is back soon,
// under its own name and without its journal, as a pod of a stateful set whose volume is gone. The other
// node has a copy of what it used in the life before.
func TestAZoneThatIsBackUnderItsNames(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 8 * time.Second, 40 * time.Second} {
		ends := after == 8*time.Second // once more
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, long("fixed_window", 100, ""))
			inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
				c.meet()
				nextCell(10 * time.Minute)
				n2.usesUp(t, "a")
				n2.check(t, request("b"))
				time.Sleep(5 * time.Second)
				c.loseJournal("us/n2")
				c.flushAll("us")
				time.Sleep(after)
				n2 = c.start("us/n2", d)
				c.meet()
				time.Sleep(after / 2) // the store has answered it again, or not yet
				back, all := time.Now(), []*running{n1, n2}
				if ends {
					all = all[:1]
					c.stop("us/n2")
				}
				for _, n := range all {
					for _, account := range []string{"b", "unused by " + n.name} {
						c.within(20*time.Second, n.name+" to decide "+account, func() bool {
							if d := n.check(t, request("a")); d.Allowed {
								t.Fatalf("what us/n2 used is admitted again: %+v", d)
							}
							return n.check(t, request(account)).Reason == admit.WithinLimit
						})
					}
					if d := n.check(t, request("a")); d.Reason != admit.OverLimit {
						t.Errorf("%s: %+v", n.name, d)
					}
				}
				t.Logf("all are decided again after %v", time.Since(back).Round(time.Millisecond))
			})
		})
	}
}
