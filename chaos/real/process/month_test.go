//go:build !race

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
)

const monthLimits = `
version: 1
regions:
  us: {weight: 40}
  eu: {weight: 40}
  ap: {weight: 20}
limits:
  - {name: month, domain: api, key: [month], algorithm: fixed_window, limit: 1000, window: 720h}
  - {name: year, domain: api, key: [year], algorithm: fixed_window, limit: 1000, window: year, timezone: Asia/Tokyo, starts: 04-01}
`

// monthRate is the load in us, in units a second, after us has lent some units. It is that low
// because a region that may use its part within the month lends nothing.
const monthRate = 60

// TestMonth loses the Redis of a region and all its nodes. Use of a limit of a month must come back
// from checkpoints, and rows from journals and from the other regions.
func TestMonth(t *testing.T) {
	suite.Long(t)
	t.Parallel()
	f := raise(t, Config{Limits: monthLimits, Regions: []RegionConfig{{Name: "us", Nodes: 2},
		{Name: "eu"}, {Name: "ap"}}})
	bound := printed(t, monthLimits, "month", "--nodes", "2", "--rate", fmt.Sprint(monthRate)).of(t,
		"us", "store-lost", "they ended, too, and are back")
	for i := range timesOr(1) {
		t.Run("all back at once",
			func(t *testing.T) { monthLost(t, f, "month", "all back at once", i, bound, nil) })
		t.Run("a calendar's year, all back at once",
			func(t *testing.T) { monthLost(t, f, "year", "all back at once", i, bound, nil) })
		t.Run("some back later", func(t *testing.T) {
			// Without n2, nobody in us knows all that us has lent, and ap cannot tell what it was
			// lent.
			monthLost(t, f, "month", "some back later", i, bound, []*Node{f.Region("us").Nodes[1],
				f.Region("ap").Nodes[0]})
		})
	}
}

// monthLost spends part of the window of a limit, loses everything except the journals and the
// Redis of the other regions, and spends the rest.
func monthLost(t *testing.T, f *Fleet, limit, name string, round int, bound int64, later []*Node) {
	us, eu, ap := f.Region("us"), f.Region("eu"), f.Region("ap")
	judged := fixed(1000, month)
	if limit == "year" {
		judged.Calendar = &oracle.Calendar{Unit: "year", Zone: time.FixedZone("Asia/Tokyo", 9*3600),
			Month: time.April, Day: 1}
	}
	b := newBucket(t, limit, name+string(rune('a'+round)), judged)
	suite.Eventually(t, "us has lent some to ap", func() bool {
		b.spend(ap.Nodes[0], 20)
		return b.ledger(us.Nodes[0]).lent("ap") > 0
	})
	var stops []func()
	for _, n := range us.Nodes {
		_, stop := b.offer(f, monthRate/2, n)
		stops = append(stops, stop)
	}
	suite.Eventually(t, "us has used much", func() bool { return b.ledger(us.Nodes[0]).Used > 150 })
	for _, n := range nodesOf(f.Regions...) {
		n.Kill()
	}
	us.Redis.Kill()
	for _, stop := range stops {
		stop()
	}
	used := int64(0)
	for _, p := range b.judge.Summary() {
		for _, r := range p.Regions {
			if r.Region == "us" {
				used += r.Admitted
			}
		}
	}
	must(t, us.Redis.Start(t.Context()))
	must(t, f.each(func(n *Node) error {
		for _, away := range later {
			if n == away {
				return nil
			}
		}
		return n.Start(t.Context())
	}))
	b.waitForStore(us.Nodes[0])
	first := b.ledger(us.Nodes[0])
	if first.Used < used-bound {
		t.Errorf("us used %d, and %d are restored", used, first.Used)
	}
	apart := int64(0)
	if later != nil {
		b.drain(quiet, us.Nodes[0], eu.Nodes[0])
		apart = b.certain()
		t.Logf("%s: with ap and us/n2 away us has a share of %d and all together admit %d of 1000",
			name, first.Share, b.judge.Verdict().MaxAdmitted)
		for _, n := range later {
			must(t, n.Start(t.Context()))
		}
	}
	must(t, f.Meet(t.Context()))
	b.drain(quiet, nodesOf(f.Regions...)...)
	excess := b.certain()
	t.Logf("%s: us used %d, %d restored at once; in the end %d of 1000 admitted, %d above it, printed %d, %d unanswered", name,
		used, first.Used, b.judge.Verdict().MaxAdmitted, excess, bound, b.unanswered.Load())
	if max(excess, apart) > bound {
		t.Errorf("%d above the limit, printed %d", max(excess, apart), bound)
	}
	if admitted := b.judge.Verdict().MaxAdmitted; 100*admitted < 97*1000 {
		t.Errorf("no more than %d of 1000 could be used", admitted)
	}
}
