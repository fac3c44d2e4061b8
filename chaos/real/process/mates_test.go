//go:build !race

package process

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/real/load"
)

// matesLimits admit nothing without a Redis, because that would be added to the limit.
const matesLimits = `
version: 1
regions:
  us: {weight: 40}
  eu: {weight: 40}
  ap: {weight: 20}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 200, window: 1s, on_store_failure: deny}
`

// TestMates moves traffic between regions, and between the two nodes of each. Together they admit
// exactly the limit, and use nearly all of it.
func TestMates(t *testing.T) {
	f := raise(t, Config{Limits: matesLimits, Regions: []RegionConfig{{Name: "us", Nodes: 2},
		{Name: "eu", Nodes: 2}, {Name: "ap", Nodes: 2}}})
	b := newBucket(t, "account", "1", fixed(200, time.Second))
	nodes := nodesOf(f.Regions...)
	flows := make([]*Flow, len(nodes))
	for i, n := range nodes {
		var stop func()
		flows[i], stop = b.offer(f, 0, n)
		defer stop()
	}
	// Units a second at each node: us, us, eu, eu, ap, ap. Their sum is always above the limit, and
	// every region can itself use what it may not lend.
	for range timesOr(1) {
		for _, c := range []struct {
			name  string
			rates []int64
		}{
			{"everywhere", []int64{60, 60, 60, 60, 30, 30}},
			{"to us/n1", []int64{240, 5, 10, 10, 5, 5}},
			{"to us/n2", []int64{5, 240, 10, 10, 5, 5}},
			{"to eu/n2", []int64{10, 10, 5, 240, 5, 5}},
		} {
			must(t, b.judge.Phase(c.name, time.Now()))
			for i, rate := range c.rates {
				flows[i].SetRate(load.PerSecond(rate))
			}
			pause(t, 3*time.Second)
		}
	}
	for _, flow := range flows {
		flow.SetRate(0)
	}
	pause(t, 500*time.Millisecond)
	v := b.judge.Verdict()
	if v.Proven() || b.certain() > 0 {
		t.Errorf("%v\n%v", v, v.Violations)
	}
	b.wantNearlyAll(t)
}

// wantNearlyAll compares what was admitted with what one limiter for all would have admitted. If
// demand stays in its regions, nearly all of it must be. If demand moves to another region, rights
// follow when the old demand is seen to have gone.
func (b *bucket) wantNearlyAll(t *testing.T) {
	var admitted, pooled int64
	for _, p := range b.judge.Summary() {
		admitted += p.Total.Admitted
		pooled += p.Total.PooledAdmits
		t.Logf("%-10s %4d units admitted, %4d by one limiter for all", p.Name, p.Total.Admitted,
			p.Total.PooledAdmits)
	}
	t.Logf("%v; %.1f %% of what one limiter for all would have admitted", b.judge.Verdict(),
		100*float64(admitted)/float64(pooled))
	if 100*admitted < 85*pooled {
		t.Errorf("%d units admitted, %d by one limiter for all", admitted, pooled)
	}
}
