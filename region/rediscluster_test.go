package region_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region"
)

// TestTwoRegionsOnRealServers: one region has a Redis Cluster of three masters, the other a single
// Redis, in real time. Rights move between them. Requests of limits on several masters are charged
// everywhere or nowhere. No limit is exceeded.
func TestTwoRegionsOnRealServers(t *testing.T) {
	t.Parallel()
	three, one := fixtures.Started(t)(servers.StartCluster(t.Context(), 3)), fixtures.Process(t)
	c := newCluster(t, t.TempDir(), "here/n1", "there/n1")
	c.servers["here"], c.servers["there"], c.real = three, one, true
	defer c.close()
	d := documents.Parse(t, 1, region.HereAndThere, "name: per-account, limit: 100, window: 24h",
		"name: per-address, key: [address], limit: 1000, window: 24h")
	here, there := c.start("here/n1", d), c.start("there/n1", d)
	c.meet()
	if here.shardsOf(both(1)) != 2 || there.shardsOf(both(1)) != 1 {
		t.Fatal("the limits are in one shard: this test proves nothing")
	}
	q := both(1)
	admitted := 0
	c.within(20*time.Second, "rights to come to the region on the Cluster", func() bool {
		for here.check(t, q).Allowed {
			admitted++
		}
		return admitted >= 60
	})
	for there.check(t, q).Allowed {
		admitted++
	}
	if admitted > 100 {
		t.Errorf("%d admitted of 100", admitted)
	}
	if account, address := here.used(t, "per-account", q), here.used(t, "per-address",
		q); account != address {
		t.Errorf("%d charged to the account, %d to the address: a denial's charge stayed", account,
			address)
	}
}

// asCluster makes a region's embedded Redis pass for a Redis Cluster of one server, whose keys are
// in many shards.
func (c *cluster) asCluster(region string) {
	c.onRedis(region)
	s := c.servers[region]
	c.servers[region] = &servers.Server{URL: strings.Replace(s.URL, "redis://", "redis+cluster://",
		1), Now: s.Now}
}

// TestTransfersWithACluster: rights move between a region on a Cluster and one that is not, and the
// ceiling holds.
func TestTransfersWithACluster(t *testing.T) {
	suite.LongWithRace(t)
	inBubble(t, []string{"here/n1", "there/n1"}, func(t *testing.T, c *cluster) {
		c.asCluster("here")
		d := documents.Parse(t, 1, region.HereAndThere, "name: a, limit: 1000, window: 1h")
		here, there := c.start("here/n1", d), c.start("there/n1", d)
		c.meet()
		total := map[string]int{}
		for _, account := range []string{"1", "2", "3"} {
			c.within(10*time.Second, "rights to come", func() bool {
				total[account] += here.usesUp(t, account)
				return total[account] > 600
			})
			total[account] += there.usesUp(t, account)
			if total[account] > 1000 {
				t.Errorf("account %s: %d admitted of 1000", account, total[account])
			}
		}
	})
}
