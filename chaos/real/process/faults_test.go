//go:build !race

package process

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// faultLimits are shared by two regions half and half. Half of it may be lent, so that the part
// that nodes admit without their Redis is large enough to matter.
const faultLimits = `
version: 1
regions:
  us: {weight: 50}
  eu: {weight: 50}
limits:
  - {name: quick, domain: api, key: [quick], algorithm: fixed_window, limit: 200, window: 2s, lending_limit: 0.5}
`

// fault breaks something in a region and repairs it, and names the bounds that it may exceed the
// limit by: cause and case, as they are printed.
type fault struct {
	name        string
	breaks      func(*testing.T, *Region)
	lasts       time.Duration
	mends       func(*testing.T, *Region)
	terms       [][2]string // beside what nodes admit without their Redis
	keepsOnDisk bool        // the Redis keeps its data on disk
}

// lost is what a Redis that lost its data may admit above the limit.
var lost = [2]string{"store-lost", "any loss"}

func nothing(*testing.T, *Region) {}

func faults() []fault {
	restart := func(t *testing.T, r *Region) { must(t, r.Redis.Start(t.Context())) }
	kill := func(_ *testing.T, r *Region) { r.Redis.Kill() }
	stopped := 2 * time.Second
	if *times > 0 {
		stopped = 5 * time.Second
	}
	return []fault{
		{name: "one of two nodes killed",
			breaks: func(_ *testing.T, r *Region) { r.Nodes[1].Kill() }, lasts: time.Second,
			mends: func(t *testing.T, r *Region) { must(t, r.Nodes[1].Start(t.Context())) }},
		{name: "Redis killed, empty when it is back", breaks: kill, lasts: time.Second,
			mends: restart, terms: [][2]string{lost}},
		{name: "Redis stopped for a while",
			breaks: func(t *testing.T, r *Region) { must(t, r.Redis.Pause()) }, lasts: stopped,
			mends: func(t *testing.T, r *Region) { must(t, r.Redis.Resume()) }},
		{name: "FLUSHALL", breaks: func(t *testing.T,
			r *Region) {
			must(t, r.Redis.Client.FlushAll(t.Context()).Err())
		}, mends: nothing,
			terms: [][2]string{lost}},
		{name: "SCRIPT FLUSH",
			breaks: func(t *testing.T,
				r *Region) {
				must(t, r.Redis.Client.ScriptFlush(t.Context()).Err())
			}, mends: nothing},
		{name: "Redis killed, with its data when it is back", breaks: kill, lasts: time.Second,
			mends: restart, terms: [][2]string{lost},
			keepsOnDisk: true},
	}
}

// TestFaults breaks things under load. The limit is exceeded by at most the printed bounds, and the
// region admits with its Redis again by itself.
func TestFaults(t *testing.T) {
	t.Parallel()
	regions := func(args ...string) Config {
		return Config{Limits: faultLimits,
			Regions: []RegionConfig{{Name: "us", Nodes: 2, RedisArgs: args}, {Name: "eu"}}}
	}
	memory, disk := raise(t, regions()), raise(t, regions("--appendonly", "yes", "--appendfsync",
		"always"))
	bounds := printed(t, faultLimits, "quick", "--nodes", "2")
	for _, c := range faults() {
		t.Run(c.name, func(t *testing.T) {
			f := memory
			if c.keepsOnDisk {
				f = disk
			}
			c.plays(t, f, bounds)
		})
	}
}

// plays makes the fault happen, several times if the run is to be long. The excess must never be
// more than the printed bounds.
func (c fault) plays(t *testing.T, f *Fleet, bounds bounds) {
	t.Helper()
	var most, excess, unanswered int64
	var longest, back time.Duration
	for range timesOr(1) {
		b, until := c.happens(t, f)
		certain := b.certain()
		most = max(most, c.bound(t, bounds, b))
		if v := b.judge.Verdict(); certain > most || v.Misplaced+v.Duplicates > 0 {
			t.Errorf("%v; %d above the limit for certain, printed %d\n%v", v, certain, most, v.Violations)
		}
		excess, back = max(excess, certain), max(back, until)
		unanswered += b.unanswered.Load()
		longest = max(longest, time.Duration(b.longest.Load()))
	}
	t.Logf("%-44s excess %2d (with %d unanswered), printed %2d; longest answer %v; back after %v",
		c.name,
		excess, unanswered, most, longest.Round(time.Millisecond), back.Round(10*time.Millisecond))
}

// bound returns by how much the fault may exceed the limit of a bucket.
func (c fault) bound(t *testing.T, all bounds, b *bucket) int64 {
	units := b.alone(all)
	for _, of := range c.terms {
		units += all.of(t, "us", of[0], of[1])
	}
	return units
}

// happens makes the fault happen in us while all nodes are asked for more than the limit. It
// returns how long after the repair us admitted with its Redis again.
func (c fault) happens(t *testing.T, f *Fleet) (*bucket, time.Duration) {
	us := f.Region("us")
	b := newBucket(t, "quick", time.Now().Format(time.RFC3339Nano), fixed(200, 2*time.Second))
	var stops []func()
	for _, n := range us.Nodes {
		_, stop := b.offer(f, 100, n)
		stops = append(stops, stop)
	}
	_, stop := b.offer(f, 100, f.Region("eu").Nodes...)
	stops = append(stops, stop)
	admits := func(a oracle.Answer) bool { return a.Region == "us" && a.Outcome == oracle.Admitted }
	b.await(t, "admitted by the Redis of us", admits)
	// What is admitted without Redis shows only when what may be admitted with it is used up.
	b.await(t, "denied by the Redis of us",
		func(a oracle.Answer) bool {
			return a.Region == "us" && a.Outcome == oracle.Denied && a.Share > 0
		})
	c.breaks(t, us)
	pause(t, c.lasts)
	c.mends(t, us)
	mended := time.Now()
	b.await(t, "admitted by the Redis of us again", admits)
	back := time.Since(mended)
	pause(t, b.limit.Window) // effects of the fault show by the next window
	for _, stop := range stops {
		stop()
	}
	return b, back
}
