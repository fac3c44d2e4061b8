package region_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
)

const aDay = 24 * time.Hour

// machines are those of the region us: the clock of its Redis and of its nodes was ahead for a while.
// Others' clocks are right.
type machines struct {
	*cluster
	d            *policy.Document
	redis, nodes atomic.Int64
	forget       bool // nodes start with forget_store_time
	trust        bool // and with trust_clock
}

// withMachines runs a test on a cluster whose region us is on a twin.
func withMachines(t *testing.T, nodes []string, limits string, f func(t *testing.T, m *machines)) {
	t.Helper()
	regions := alone
	if len(nodes) > 0 && strings.HasPrefix(nodes[len(nodes)-1], "eu/") {
		regions = halves
	}
	d := documents.Parse(t, 1, regions, limits)
	inBubble(t, nodes, func(t *testing.T, c *cluster) {
		m := &machines{cluster: c, d: d}
		c.twins["us"] = twinOf("r", func() time.Duration { return time.Duration(m.redis.Load()) })
		f(t, m)
	})
}

// change is what nodes of the region are told.
func (m *machines) change(cfg *region.Config) {
	cfg.ForgetStoreTime, cfg.TrustClock = m.forget, m.trust
	if cfg.Region == "us" {
		m.clockAhead(func() time.Duration { return time.Duration(m.nodes.Load()) })(cfg)
	}
}

// made makes what a node needs.
func (m *machines) made(name string) region.Config {
	m.t.Helper()
	return m.config(name, m.d, m.change)
}

func (m *machines) start(name string) *running {
	m.t.Helper()
	return m.cluster.start(name, m.d, m.change)
}

// refused starts a node, which must fail for a reason.
func (m *machines) refused(name, why string) {
	m.t.Helper()
	if _, err := m.tryStart(name, m.d, m.change); err == nil || !strings.Contains(err.Error(), why) {
		m.t.Errorf("%s starts: %v, not %q", name, err, why)
	}
}

// ahead sets the clocks of the region's Redis and of its nodes.
func (m *machines) ahead(redis, nodes time.Duration) {
	m.redis.Store(int64(redis))
	m.nodes.Store(int64(nodes))
}

// jump has all clocks of the region's machines ahead for ten seconds.
func (m *machines) jump(by time.Duration) {
	m.ahead(by, by)
	time.Sleep(10 * time.Second)
	m.ahead(0, 0)
}

// moves reports whether another window begins within a while.
func (m *machines) moves(n *running) bool {
	m.t.Helper()
	first := n.check(m.t, request("other")).Cell
	time.Sleep(2 * time.Minute)
	return n.check(m.t, request("other")).Cell > first
}

// TestAStoreThatIsAhead: the clocks of a region's machines were a day ahead for ten seconds. A node that
// runs goes on, is not ready, and says why. One that starts does not open the store, unless the
// operator has it do so. Emptying the store does not help.
func TestAStoreThatIsAhead(t *testing.T) {
	for name, nodes := range map[string][]string{
		"alone": {"us/n1", "us/n2"}, "with a peer region": {"us/n1", "us/n2", "eu/n1"}} {
		t.Run(name, func(t *testing.T) {
			withMachines(t, nodes, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
				for _, name := range nodes {
					if name != "us/n2" {
						m.start(name)
					}
				}
				n1 := m.running["us/n1"]
				m.within(time.Minute, "us/n1 to be ready", func() bool { return n1.Ready() == nil })
				m.jump(aDay)
				m.within(30*time.Second, "us/n1 to say that its store is ahead", func() bool {
					err := n1.Ready()
					return err != nil && strings.Contains(err.Error(), "windows stand still") &&
						strings.Contains(err.Error(), "is 23h59m") && strings.Contains(err.Error(), "forget_store_time")
				})
				if m.moves(n1) {
					t.Error("windows move")
				}
				if s := n1.Status().Store; s.ClockKnown && (s.ClockApart < aDay-5*time.Minute || s.ClockApart > aDay) {
					t.Errorf("quotad_store_clock_apart_seconds shows that the store's time is %v ahead", s.ClockApart)
				}
				m.refused("us/n2", "is 23h5")
				m.trust = true
				m.start("us/n2")
				m.trust = false

				m.stop("us/n1")
				m.stop("us/n2")
				m.refused("us/n1", "the region's Redis has shown")
				m.flushAll("us")
				m.refused("us/n1", "this node's journal remembers")
				m.trust = true
				n1 = m.start("us/n1")
				if m.moves(n1) {
					t.Error("windows move after FLUSHALL")
				}
			})
		})
	}
}

// TestNoFalseAlarmOfAStoreThatIsAhead: one clock that is as far as the store's time is enough.
func TestNoFalseAlarmOfAStoreThatIsAhead(t *testing.T) {
	for name, at := range map[string]struct {
		nodes       []string
		redis, node time.Duration
	}{
		"a node alone is behind":                {[]string{"us/n1"}, 0, -10 * time.Minute},
		"a node is behind, and so is its Redis": {[]string{"us/n1", "eu/n1"}, -10 * time.Minute, -10 * time.Minute},
		"the Redis is behind":                   {[]string{"us/n1", "eu/n1"}, -10 * time.Minute, 0},
		"the Redis is ahead, and windows move":  {[]string{"us/n1", "eu/n1"}, 10 * time.Minute, 0},
		"half a minute":                         {[]string{"us/n1", "eu/n1"}, -30 * time.Second, -30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			withMachines(t, at.nodes, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
				for _, name := range at.nodes {
					m.start(name)
				}
				n1 := m.running["us/n1"]
				time.Sleep(20 * time.Second)
				m.ahead(at.redis, at.node)
				for range 30 {
					time.Sleep(time.Second)
					if err := n1.AheadReady(); err != nil {
						t.Fatalf("us/n1: %v", err)
					}
				}
				m.stop("us/n1")
				m.start("us/n1")
			})
		})
	}
}

// TestAClockThatIsAheadAtTheStart: a node whose clock is ahead of all that it hears does not open its
// store, until the clock is right or the operator trusts it. One that is not ahead of somebody does, and
// so does one that hears nobody.
func TestAClockThatIsAheadAtTheStart(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: m, limit: 1000, window: 1m")
	const day = 24 * time.Hour
	always := func(ahead time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return ahead }
	}
	for name, at := range map[string]struct {
		ahead                  func(since time.Duration) time.Duration // eu/n1
		other                  time.Duration                           // us/n1
		alone, trusted, starts bool
	}{
		"right":           {ahead: always(0), starts: true},
		"a day ahead":     {ahead: always(day)},
		"trusted":         {ahead: always(day), trusted: true, starts: true},
		"nobody is heard": {ahead: always(day), alone: true, starts: true},
		"half a minute":   {ahead: always(30 * time.Second), starts: true},
		"the other, too":  {ahead: always(day), other: day, starts: true},
		"behind":          {ahead: always(-day), starts: true},
		"for ten seconds": {ahead: func(since time.Duration) time.Duration {
			if since < 10*time.Second {
				return day
			}
			return 0
		}, starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
				begun := time.Now()
				if !at.alone {
					c.twins["us"] = twinAhead("r", at.other)
					c.start("us/n1", d, c.clockAhead(func() time.Duration { return at.other }))
				}
				ahead := func() time.Duration { return at.ahead(time.Since(begun)) }
				c.twins["eu"] = twinOf("r", ahead)
				_, err := c.tryStart("eu/n1", d, c.clockAhead(ahead), func(cfg *region.Config) {
					cfg.TrustClock, cfg.Alone = at.trusted, at.alone
				})
				if (err == nil) != at.starts || err != nil && !strings.Contains(err.Error(), "clock is 24h0m0s ahead of that of us/n1") {
					t.Errorf("starts: %v", err)
				}
				if name == "for ten seconds" && time.Since(begun) < 9*time.Second {
					t.Errorf("it started after %v", time.Since(begun))
				}
			})
		})
	}
}
