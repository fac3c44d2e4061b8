//go:build !race

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const zoneLimits = `
version: 1
regions:
  us: {weight: 1}
  eu: {weight: 1}
limits:
  - {name: hour, domain: api, key: [hour], algorithm: fixed_window, limit: 2000, window: 1h, on_store_failure: deny}
  - {name: month, domain: api, key: [month], algorithm: fixed_window, limit: 2000, window: 720h, on_store_failure: deny}
`

// zoneRate is the load at the node that is lost, in units a second.
const zoneRate = 50

// TestZone loses the Redis of a region and one of its two nodes for good, together, under load, as an
// availability zone is lost. The other node has copies of what that one saw: used and unused keys of an
// hour's and a month's limit are decided again, and no more is admitted above the limit than is printed.
func TestZone(t *testing.T) {
	suite.Long(t)
	t.Parallel()
	losesTogether(t, 2, func(us *Region) *Node {
		us.Redis.Kill()
		us.Nodes[1].Kill()
		return us.Nodes[0]
	})
}

// TestTheOnlyMachine is the same of a region's only node, whose disk is lost with it. A node without a journal
// takes its place, and the other region has copies.
func TestTheOnlyMachine(t *testing.T) {
	suite.Long(t)
	t.Parallel()
	losesTogether(t, 1, func(us *Region) *Node {
		us.Redis.Kill()
		us.Nodes[0].Kill()
		suite.Must(t, os.RemoveAll(filepath.Join(us.Nodes[0].dir, "data")))
		return us.Nodes[0]
	})
}

// losesTogether loses the last node of a region with its Redis, under load. lost returns the node that goes on.
func losesTogether(t *testing.T, nodes int, lost func(us *Region) *Node) {
	t.Helper()
	f := raise(t, Config{Limits: zoneLimits, Regions: []RegionConfig{{Name: "us", Nodes: nodes}, {Name: "eu"}}})
	us := f.Region("us")
	windows := map[string]time.Duration{"hour": time.Hour, "month": month}
	used, unused := map[string]*bucket{}, map[string]*bucket{}
	var stops []func()
	for limit, window := range windows {
		used[limit] = newBucket(t, limit, "used", fixed(2000, window))
		unused[limit] = newBucket(t, limit, "unused", fixed(2000, window))
		_, stop := used[limit].offer(f, zoneRate, us.Nodes[nodes-1])
		stops = append(stops, stop)
	}
	for _, b := range used {
		suite.Eventually(t, "us has used much", func() bool { return b.used(us.Nodes[0]) > 300 })
	}
	n := lost(us)
	for _, stop := range stops {
		stop()
	}
	suite.Must(t, us.Redis.Start(t.Context()))
	back := time.Now()
	if !n.Running() {
		suite.Must(t, n.Launch())
	}
	for limit := range windows {
		for what, b := range map[string]*bucket{"used": used[limit], "unused": unused[limit]} {
			suite.Eventually(t, what+" key admits", func() bool { return b.spend(n, 1) == 1 })
			t.Logf("the %s key of the %s's limit is decided again %v after the Redis is back", what, limit, time.Since(back).Round(time.Millisecond))
		}
		bound := printed(t, zoneLimits, limit, "--nodes", fmt.Sprint(nodes), "--rate", fmt.Sprint(zoneRate)).of(t, "us", "store-lost", "one is lost, too, and left a copy")
		used[limit].drain(quiet, n, f.Region("eu").Nodes[0])
		excess := used[limit].certain()
		t.Logf("%s: %d admitted of 2000, %d above it, printed %d", limit, used[limit].judge.Verdict().MaxAdmitted, excess, bound)
		if excess > bound {
			t.Errorf("%s: %d above the limit, printed %d", limit, excess, bound)
		}
		if admitted := used[limit].judge.Verdict().MaxAdmitted; 100*admitted < 97*2000 {
			t.Errorf("%s: no more than %d of 2000 could be used", limit, admitted)
		}
	}
}
