package region_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/store"
)

// loseJournal ends a node and takes its journal away.
func (c *cluster) loseJournal(name string) {
	c.t.Helper()
	c.stop(name)
	suite.Must(c.t, os.Remove(c.Journal(name)))
}

// TestAJournalThatWasReplacedIsWholeAgain: a node loses its journal in the middle of a long window, reads
// what its store has, and then the Redis loses its data. What was used is known, and nobody waits for
// the window's end.
func TestAJournalThatWasReplacedIsWholeAgain(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		nextCell(10 * time.Minute)
		for range 20 {
			n1.check(t, request("a"))
			n2.check(t, request("b"))
		}
		for i := range 300 { // more than a page
			n1.check(t, request(fmt.Sprintf("many%d", i)))
		}
		c.loseJournal("us/n2")
		n2 = c.start("us/n2", d)
		c.meet()
		c.within(10*time.Second, "us/n2 to have read the store", func() bool { j := n2.Status().Journal; return j.Whole && j.WholeSince.IsZero() })
		// All that us/n1 knew of b, as of all others, it had from us/n2.
		c.flushAll("us")
		for _, n := range []*running{n1, n2} {
			c.decides(n, 10*time.Second, admit.WithinLimit, "a", "b", "many7", "unused by "+n.name)
		}
		for _, account := range []string{"a", "b"} {
			if used := n2.state(t, request(account)).Used; used < 20 {
				t.Errorf("%d used of %s, 20 were admitted before the loss", used, account)
			}
		}
	})
}

// TestAStoreIsReadInOneGeneration: the Redis loses its data while a node reads it. What the node read is
// no witness for the rest.
func TestAStoreIsReadInOneGeneration(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		c.onTwin("us") // the embedded Redis lists all keys at once
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		nextCell(10 * time.Minute)
		for i := range 1000 {
			n1.check(t, request(fmt.Sprintf("many%d", i)))
		}
		c.loseJournal("us/n2")
		n2 = c.start("us/n2", d)
		c.within(5*time.Second, "us/n2 to have read something", func() bool { return n2.rights.Numbers().Read > 0 })
		c.flushAll("us")
		time.Sleep(10 * time.Second)
		if j := n2.Status().Journal; j.Whole && j.WholeSince.IsZero() {
			t.Fatalf("us/n2 read a part of its store before it lost its data, and vouches for all")
		}
		if d := n2.check(t, request("many1")); d.Allowed {
			t.Errorf("admitted, though nobody knows what us/n2 used: %+v", d)
		}
	})
}

// TestWhatCannotBeReadIsNotVouchedFor: the store has a bucket of a limit that no document of the node
// has. What was used of it the node cannot read, so it is no witness before the bucket is gone.
func TestWhatCannotBeReadIsNotVouchedFor(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		c.onRedis("us")
		c.start("us/n1", d)
		c.start("us/n2", d)
		key := store.BucketKey(store.Whole, "of a limit that is gone")
		c.redis("us", func(ctx context.Context, client *redis.Client) error { return client.HSet(ctx, key, "u", "1").Err() })
		c.loseJournal("us/n2")
		n2 := c.start("us/n2", d)
		whole := func() bool { j := n2.Status().Journal; return j.Whole && j.WholeSince.IsZero() }
		time.Sleep(10 * time.Second)
		if n2.rights.Numbers().Read == 0 || whole() {
			t.Fatalf("after %d keys the journal is whole: %v", n2.rights.Numbers().Read, whole())
		}
		c.redis("us", func(ctx context.Context, client *redis.Client) error { return client.Del(ctx, key).Err() })
		c.within(2*time.Minute, "us/n2 to have read all", whole)
	})
}

// TestRowsAreRead: both nodes of a region lose their journals, one after the other, and read what their
// store has lent. After a loss of the Redis the region knows it, without the region that it lent to.
func TestRowsAreRead(t *testing.T) {
	d := documents.Parse(t, 1, halves, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		c.start("us/n1", d)
		c.start("us/n2", d)
		eu := c.start("eu/n1", d)
		c.meet()
		nextCell(10 * time.Minute)
		used := 0
		c.within(time.Minute, "eu to borrow", func() bool {
			used += eu.usesUp(t, "a")
			return used > 60
		})
		for _, name := range []string{"us/n1", "us/n2"} {
			c.loseJournal(name)
			n := c.start(name, d)
			c.within(10*time.Second, name+" to have read the store", func() bool { j := n.Status().Journal; return j.Whole && j.WholeSince.IsZero() })
		}
		c.stop("eu/n1")
		c.flushAll("us")
		n := c.running["us/n1"]
		c.within(20*time.Second, "us to decide", func() bool {
			d := n.check(t, request("a"))
			if d.Allowed {
				used++
			}
			return d.Reason == admit.WithinLimit
		})
		used += n.usesUp(t, "a")
		if used > 100 {
			t.Errorf("%d admitted of 100", used)
		}
	})
}
