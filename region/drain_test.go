package region_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// A node that drains has the store charged with what it admitted without it, however recent, and
// has checkpoints of the use of long windows in its journal. The other nodes soon no longer list it
// as a member.
func TestDrain(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: hour, limit: 10000, window: 1h")
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		server := c.onTwin("us")
		us, mate := c.start("us/n1", d), c.start("us/n2", d)
		c.start("eu/n1", d)
		c.meet()
		us.check(t, request("a"))
		server.SetDown(true)
		for range 3 {
			us.check(t, request("a"))
		}
		server.SetDown(false)
		if got := us.Status().Local; got.Unbooked != 3 {
			t.Fatalf("before the end: %+v", got)
		}
		begun := time.Now()
		suite.Must(t, us.Drain(t.Context()))
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
		b, err := mate.Bucket(t.Context(), "hour", "api", request("a").Descriptors)
		if err != nil || b.Inspected.Used != 4 || us.Status().Local.Unbooked != 0 {
			t.Errorf("the mate finds %+v, %v", b.Inspected, err)
		}
		id := string(b.Limit.Bucket(request("a").Descriptors))
		if all, err := us.journal.Checkpoints(id); err != nil || len(all) != 1 || all[0].Used == 0 {
			t.Errorf("in the journal: %+v, %v", all, err)
		}
		c.within(5*time.Second, "the others to miss it", func() bool {
			return !slices.Contains(c.running["eu/n1"].Status().Members, "us/n1") &&
				len(mate.Status().Mates) == 0
		})
		c.stop("us/n1")
	})
}

// Units that cannot be charged are reported, and delay nothing.
func TestDrainWithoutStore(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: hour, limit: 10000, window: 1h, lending_limit: 0")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		c.loseStore("us")
		us.check(t, request("a"))
		err := us.Drain(t.Context())
		if err == nil || !strings.Contains(err.Error(),
			"units that node n1 admitted without the store are not charged there: 1;") {
			t.Errorf("the store is gone: %v", err)
		}
		if len(us.Members()) > 1 {
			t.Errorf("members %v", us.Members())
		}
	})
}
