package region_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region"
)

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
