package region

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// A first start that failed, for there was no Redis, takes nothing from the next: its journal holds all that was lent.
func TestAJournalIsWholeAfterAFailedFirstStart(t *testing.T) {
	d := document(t, 1, alone, long(algorithms.FixedWindow, 100, ""))
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		comeBack := c.notThere("us")
		if _, err := c.tryStart("us/n1", d); err == nil {
			t.Fatal("started without a Redis")
		}
		comeBack()
		for range 2 {
			n := c.start("us/n1", d)
			if got := n.journal.WholeSince(); got != 0 {
				t.Errorf("incarnation %d: whole since %d, want 0", n.journal.Incarnation(), got)
			}
			time.Sleep(bootstrapped + time.Minute)
			c.stop("us/n1")
		}
	})
}

// A node with a new journal may be in the place of one that was lost, also where its settings still say that the region
// starts for the first time.
func TestBootstrapVouchesForTheFirstNodesAlone(t *testing.T) {
	d := document(t, 1, alone, long(algorithms.FixedWindow, 100, ""))
	inBubble(t, []string{"us/n1", "us/n2", "us/n3"}, func(t *testing.T, c *cluster) {
		c.start("us/n1", d)
		time.Sleep(time.Minute)
		if got := c.start("us/n2", d).journal.WholeSince(); got != 0 {
			t.Errorf("a minute after the first: whole since %d, want 0", got)
		}
		time.Sleep(bootstrapped + time.Minute)
		c.stop("us/n1")
		begun := time.Now().UnixMicro()
		if got := c.start("us/n3", d).journal.WholeSince(); got < begun {
			t.Errorf("later than the first nodes of a region: whole since %d, begun at %d", got, begun)
		}
	})
}
