package region_test

import (
	"strings"
	"testing"
	"time"

	labcluster "github.com/quotad/quotad/chaos/lab/cluster"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// empty ends all nodes of the region us and empties its Redis, as an operator does who takes the time of
// the store back.
func (m *machines) empty() {
	m.t.Helper()
	for name := range m.running {
		if strings.HasPrefix(name, "us/") {
			m.stop(name)
		}
	}
	m.flushAll("us")
}

// minutes counts what the nodes admit of a key, minute by minute, and fails if a window is not that of
// the minute.
func (m *machines) minutes(many int, nodes ...*running) (admitted []int) {
	m.t.Helper()
	for range many {
		nextCell(time.Minute)
		minute, all := quantity.Cell(time.Now().Unix()/60), 0
		for range 150 {
			for _, n := range nodes {
				d := n.check(m.t, request("a"))
				if d.Cell != minute {
					m.t.Fatalf("%s decides in window %d, which is minute %d", n.name, d.Cell, minute)
				}
				if d.Allowed {
					all++
				}
			}
		}
		admitted = append(admitted, all)
	}
	return admitted
}

// TestTheStoresTimeIsTakenBack: the operator ends all nodes of the region, empties its Redis, and starts
// the nodes with forget_store_time. Then windows move, and each admits what it should. Nothing more is
// admitted of the minute of the jump.
func TestTheStoresTimeIsTakenBack(t *testing.T) {
	withMachines(t, []string{"us/n1", "us/n2"}, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
		n1 := m.start("us/n1")
		m.start("us/n2")
		m.meet()
		if all := m.minutes(1, n1); all[0] != 100 {
			t.Fatalf("%d admitted before the jump", all[0])
		}
		generation := n1.Status().Generation
		m.jump(aDay)
		n1.check(t, request("a"))
		m.within(30*time.Second, "us/n1 to find its store ahead", func() bool { return n1.Ready() != nil })

		m.forget = true
		m.stop("us/n2")
		m.refused("us/n2", "still has a time that is 23h59m")
		m.stop("us/n1")
		m.refused("us/n1", "empty their database there")
		m.empty()
		n1 = m.start("us/n1")
		n2 := m.start("us/n2")
		for _, n := range []*running{n1, n2} {
			m.within(10*time.Second, n.name+" to be ready", func() bool { return n.Ready() == nil })
			taken := n.TakenBack()
			if back := quantity.Duration(int64(taken.From - taken.To)); back < aDay-time.Minute || back > aDay+10*time.Second ||
				!strings.Contains(taken.Cost(), "S_max x 2") {
				t.Errorf("%s: it went back by %v: %s", n.name, back, taken.Cost())
			}
			if g := n.Status().Generation; g <= generation {
				t.Errorf("%s: generation %d after %d", n.name, g, generation)
			}
			if losses := n.Status().Store.Losses; (losses > 0) != (n == n1) {
				t.Errorf("%s began the store anew %d times", n.name, losses)
			}
			if d := n.check(t, request("a")); d.Allowed || d.Reason != admit.Recovering {
				t.Errorf("%s admits of the minute of the jump: %+v", n.name, d)
			}
		}
		m.forget = false
		m.stop("us/n2")
		n2 = m.start("us/n2")
		for i, all := range m.minutes(8, n1, n2) {
			if i >= 2 && all != 100 || all > 100 {
				t.Errorf("%d admitted in minute %d after it", all, i)
			}
		}
	})
}

// TestUseBeforeTheTimeWasTakenBack: what was used of a long window that is right counts when the time
// goes back, although more was used of a window that is to come.
func TestUseBeforeTheTimeWasTakenBack(t *testing.T) {
	for name, by := range map[string]time.Duration{"another window": aDay, "the same window": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			withMachines(t, []string{"us/n1"}, long("fixed_window", 100, ""), func(t *testing.T, m *machines) {
				n1 := m.start("us/n1")
				nextCell(10 * time.Minute)
				for range 40 {
					n1.check(t, request("a"))
				}
				time.Sleep(5 * time.Second)
				m.jump(by)
				for range 10 {
					n1.check(t, request("a"))
				}
				time.Sleep(5 * time.Second)
				claim := journal.Checkpoint{Bucket: "local:a", Cell: 7, Used: 1, Generation: 1,
					At: quantity.StoreTime(time.Now().Add(by).UnixMicro()), Until: quantity.StoreTime(time.Now().Add(2 * by).UnixMicro())}
				if err := n1.journal.Checkpoint(t.Context(), []journal.Checkpoint{claim}); err != nil {
					t.Fatal(err)
				}
				m.empty()
				m.forget = true
				n1 = m.start("us/n1")
				m.within(30*time.Second, "the bucket to be restored", func() bool {
					return n1.check(t, request("a")).Reason != admit.Recovering
				})
				used := n1.state(t, request("a")).Used
				if used < 40 || used > 55 {
					t.Errorf("%d used of the window", used)
				}
				if all, err := n1.journal.Checkpoints("local:a"); err != nil || len(all) != 1 || all[0] != claim {
					t.Errorf("what was spent without the store is %+v, %v", all, err)
				}
				if _, last := n1.drain(t, request("a"), 61); last.Allowed {
					t.Errorf("more than 60 were admitted after the 40: %+v", last)
				}
			})
		})
	}
}

// TestNodesThatForgetTogether: nodes that start at the same time do not wait for each other, nor tell
// each other the time that they forget.
func TestNodesThatForgetTogether(t *testing.T) {
	nodes := []string{"us/n1", "us/n2", "us/n3", "eu/n1"}
	withMachines(t, nodes, "name: minute, limit: 200, window: 1m", func(t *testing.T, m *machines) {
		for _, name := range nodes {
			m.start(name)
		}
		m.meet()
		m.jump(aDay)
		m.empty()
		m.forget = true
		starting := make(chan *running, 3)
		for _, name := range nodes[:3] {
			cfg := m.made(name)
			go func() {
				n, err := m.begin(cfg)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				starting <- n
			}()
		}
		for range 3 {
			if n := <-starting; n != nil {
				m.running[n.name] = n
			}
		}
		for name, n := range m.running {
			m.within(10*time.Second, name+" to be ready", func() bool { return n.Ready() == nil })
		}
		m.meet()
		if all := m.minutes(4, m.running["us/n1"], m.running["us/n3"]); all[3] < 100 {
			t.Errorf("%v admitted in the minutes after it", all)
		}
	})
}

// TestNodesThatForgetOneAfterTheOther: whenever the second node begins to start, none of them begins the
// store at the time that is to be forgotten.
func TestNodesThatForgetOneAfterTheOther(t *testing.T) {
	for wait := time.Duration(0); wait < 3*time.Second; wait = wait*5/4 + 10*time.Millisecond {
		t.Run(wait.String(), func(t *testing.T) {
			nodes := []string{"us/n1", "us/n2"}
			withMachines(t, nodes, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
				for _, name := range nodes {
					m.start(name)
				}
				m.meet()
				m.jump(aDay)
				m.empty()
				m.forget = true
				first := make(chan error)
				cfg := m.made("us/n1")
				go func() {
					n, err := m.begin(cfg)
					if err == nil {
						m.running["us/n1"] = n
					}
					first <- err
				}()
				time.Sleep(wait)
				second, err := m.begin(m.made("us/n2"))
				if other := <-first; err != nil || other != nil {
					t.Logf("us/n1: %v; us/n2: %v", other, err)
				}
				if err == nil {
					m.running["us/n2"] = second
				}
				if len(m.running) == 0 {
					t.Error("no node starts")
				}
				for name, n := range m.running {
					if n.IsAhead() {
						t.Errorf("%s has a store that is ahead", name)
					}
				}
			})
		})
	}
}

// TestAMateThatTellsTheTimeTooLate: a node that forgets does not begin its store at a time that is ahead,
// which another node tells in the last moment. Once it is open, the time is that of whoever knows most.
func TestAMateThatTellsTheTimeTooLate(t *testing.T) {
	withMachines(t, []string{"us/n1"}, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
		late := store.Told{Shown: quantity.StoreTime(time.Now().Add(aDay).UnixMicro())}
		near := store.Told{Shown: quantity.StoreTime(time.Now().UnixMicro())}
		m.forget = true
		cfg := m.made("us/n1")
		n, err := region.New(cfg, region.Stepping{})
		suite.Must(t, err)
		if err := n.MayGoBack(late); err == nil || !strings.Contains(err.Error(), "still knows that the store's time was") {
			t.Errorf("a time that is ahead: %v", err)
		}
		if err := n.MayGoBack(near); err != nil {
			t.Errorf("a time that is not: %v", err)
		}
		running, err := m.begin(cfg)
		suite.Must(t, err)
		m.running["us/n1"] = running
		if err := running.MayGoBack(late); err != nil {
			t.Errorf("when it is open: %v", err)
		}
	})
}

// TestAMateThatDoesNotForget: while a node runs that knows the store's time, and when one starts without
// forget_store_time, the time stays as it was.
func TestAMateThatDoesNotForget(t *testing.T) {
	withMachines(t, []string{"us/n1", "us/n2"}, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
		m.start("us/n1")
		n2 := m.start("us/n2")
		m.meet()
		m.jump(aDay)
		m.within(30*time.Second, "us/n2 to find its store ahead", func() bool { return n2.Ready() != nil })

		// us/n2 runs, and has not noticed yet that the Redis is empty.
		m.stop("us/n1")
		m.flushAll("us")
		m.forget = true
		m.refused("us/n1", "forget_store_time: ")
		if m.moves(n2) {
			t.Error("the windows of us/n2 move")
		}

		// us/n2 is not there when us/n1 forgets, and starts without.
		m.empty()
		n1 := m.start("us/n1")
		for range 2 {
			nextCell(time.Minute)
		}
		if !m.moves(n1) {
			t.Error("the windows of us/n1 stand still")
		}
		m.forget = false
		m.refused("us/n2", "this node's journal remembers")
		if !m.moves(n1) {
			t.Error("a node that did not start has the time of us/n1 stand still")
		}
		m.trust = true
		n2 = m.start("us/n2")
		m.within(10*time.Second, "us/n1 to take the time of us/n2", func() bool {
			return n1.Status().Generation == n2.Status().Generation
		})
		if m.moves(n1) || m.moves(n2) {
			t.Error("windows move though us/n2 knows the store's time")
		}
		if n1.Ready() == nil {
			t.Error("us/n1 is ready")
		}
	})
}

// TestForgettingIsRefused: what the operator says must make sense.
func TestForgettingIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		redis, nodes time.Duration // the clocks when the node starts again
		trust        bool
		why          string // empty: it starts
	}{
		"as it should be":                 {},
		"the clock of the Redis is wrong": {redis: 5 * time.Minute, why: "the clock of the Redis at in memory is 5m0s from"},
		"the node's clock is behind":      {redis: -30 * time.Minute, nodes: -30 * time.Minute, why: "the clock of eu/n1 is 30m0s from"},
		"the node's clock is right":       {redis: -30 * time.Minute, nodes: -30 * time.Minute, trust: true},
	} {
		t.Run(name, func(t *testing.T) {
			withMachines(t, []string{"us/n1", "eu/n1"}, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
				m.start("us/n1")
				m.start("eu/n1")
				m.meet()
				m.jump(aDay)
				m.empty()
				m.forget, m.trust = true, tc.trust
				m.ahead(tc.redis, tc.nodes)
				if tc.why == "" {
					m.start("us/n1")
					return
				}
				m.refused("us/n1", tc.why)
				cfg := m.made("us/n1") // the journal has forgotten nothing
				if _, latest := cfg.Journal.StoreTime(); time.Until(time.UnixMicro(int64(latest))) < aDay-time.Minute {
					t.Error("the journal has forgotten the time")
				}
				labcluster.Discard(cfg)
			})
		})
	}
}

// TestForgettingNeedsAnEmptyStore: a copy of the Redis from before the jump is no store whose time may be
// forgotten, for what was used since then would be had once more. And where nothing is ahead, nothing is
// forgotten.
func TestForgettingNeedsAnEmptyStore(t *testing.T) {
	withMachines(t, []string{"us/n1"}, "name: minute, limit: 100, window: 1m", func(t *testing.T, m *machines) {
		n1 := m.start("us/n1")
		n1.check(t, request("a"))
		m.stop("us/n1")
		m.forget = true
		n1 = m.start("us/n1")
		if n1.TakenBack() != (region.TakenBack{}) || n1.Status().Store.Losses != 0 {
			t.Errorf("the time went back: %+v", n1.TakenBack())
		}
		before := m.twins["us"].Replica(m.twins["us"].Replid())
		m.jump(aDay)
		m.stop("us/n1")
		m.twins["us"] = before
		m.refused("us/n1", "has data of before")
	})
}

// TestALimitThatIsOutWhenTimeIsTakenBack: what was used of a limit that no document has at the moment counts when
// the limit is put back, since its window had begun.
func TestALimitThatIsOutWhenTimeIsTakenBack(t *testing.T) {
	for name, jump := range map[string]time.Duration{"no jump": 0, "jump": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			other := "name: other, key: [account], limit: 100, window: 1h"
			withMachines(t, []string{"us/n1"}, long("fixed_window", 100, ""), func(t *testing.T, m *machines) {
				n1 := m.start("us/n1")
				nextCell(10 * time.Minute)
				cell := n1.check(t, request("a")).Cell
				m.ahead(jump, jump)
				time.Sleep(2 * time.Second)
				n1.usesUp(t, "a")
				if got := n1.check(t, request("a")).Cell; got != cell {
					t.Fatal("another window")
				}
				time.Sleep(3 * time.Second)
				m.ahead(0, 0)
				suite.Must(t, n1.Adopt(t.Context(), documents.Parse(t, 2, alone, other)))
				time.Sleep(5 * time.Second)
				m.forget = jump > 0
				m.empty()
				n1 = m.start("us/n1")
				suite.Must(t, n1.Adopt(t.Context(), documents.Parse(t, 3, alone, long("fixed_window", 100, ""), other)))
				for range 60 {
					if d := n1.check(t, request("a")); d.Allowed && d.Cell == cell && d.Limit == "long" {
						t.Fatalf("admitted again: %+v", d)
					}
					time.Sleep(time.Second)
				}
				t.Logf("%+v", n1.check(t, request("a")))
			})
		})
	}
}
