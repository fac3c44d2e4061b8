package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestThreeFindEachOtherByOneSeed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		views := make(chan []Member, 100)
		a := start(t, net, "us-east/n1", seeds(net, "us-east/n1")) // its own seed, too
		b := start(t, net, "us-east/n2", seeds(net, "us-east/n1"))
		c := start(t, net, "eu-west/n1", func(c *Config) {
			seeds(net, "us-east/n1")(c)
			c.OnChange = func(members []Member) { views <- members }
		})
		nodes := []*node{a, b, c}
		within(t, 5*time.Second, "three nodes to find each other", func() error {
			return sameView(nodes, "eu-west/n1", "us-east/n1", "us-east/n2")
		})
		for _, m := range a.Members() {
			if string(m.Meta) != "meta of "+m.Name || m.Addr != addr(net, m.Name) {
				t.Errorf("member %q is at %v with meta data %q", m.Name, m.Addr, m.Meta)
			}
		}
		time.Sleep(5 * time.Second)
		var last []Member
		for len(views) > 0 {
			last = <-views
		}
		if len(last) != 3 {
			t.Errorf("OnChange was last told of %d members, want 3", len(last))
		}
		if !a.log.has("level=INFO") || !a.log.has("member joined") || a.log.has("memberlist:") {
			t.Errorf("want joins at info, and nothing else of memberlist's; the log has:\n%s",
				a.log.b.String())
		}
	})
}

// TestBroadcastReachesAllSoon: chance decides which nodes a change reaches by packets, so one node
// in 25 may have to wait for a push/pull.
func TestBroadcastReachesAllSoon(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		nodes := cluster(t, newNetwork(t), "a", "b", "c", "d", "e")
		time.Sleep(10 * time.Second)
		want := make(map[string]int)
		for i, n := range nodes {
			n.spread(t, n.cfg.Name, i)
			want[n.cfg.Name] = i
		}
		within(t, time.Second, "changes to reach nearly all", func() error {
			arrived := 0
			for _, n := range nodes {
				arrived += len(n.state.clone())
			}
			if arrived < 24 {
				return fmt.Errorf("%d of 25 arrived", arrived)
			}
			return nil
		})
		within(t, 15*time.Second, "changes to reach all",
			func() error { return sameState(nodes, want) })
	})
}

func TestLateJoinerGetsTheWholeState(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b")
		want := make(map[string]int)
		for i := range 5000 { // 70 KB: no packet holds it
			key := fmt.Sprintf("key-%d", i)
			want[key] = i
			nodes[0].set(key, i)
		}
		within(t, 15*time.Second, "a push/pull", func() error { return sameState(nodes, want) })
		late := start(t, net, "late", seeds(net, "b"))
		within(t, time.Second, "the late joiner",
			func() error { return sameState([]*node{late}, want) })
		time.Sleep(5 * time.Second)
		if s := late.Stats(); s.StreamBytesIn == 0 || s.StreamBytesOut == 0 ||
			s.PacketBytesIn == 0 || s.PacketBytesOut == 0 || s.RejoinsSucceeded == 0 {
			t.Errorf("nothing was counted: %+v", s)
		}
	})
}

// TestNewcomerIsGreeted: a newcomer's state reaches nodes that it did not call, sooner than by a
// push/pull. Chance decides which nodes hear of the newcomer by packets, so one of five may have to
// wait for a push/pull.
func TestNewcomerIsGreeted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b", "c", "d", "e")
		late := start(t, net, "late", seeds(net, "a"))
		late.set("brought along", 1)
		want := map[string]int{"brought along": 1}
		within(t, 2*time.Second, "nearly all to have greeted", func() error {
			greeted := 0
			for _, n := range nodes {
				if sameState([]*node{n}, want) == nil {
					greeted++
				}
			}
			if greeted < 4 {
				return fmt.Errorf("%d of 5 have", greeted)
			}
			return nil
		})
		within(t, 15*time.Second, "all to know", func() error { return sameState(nodes, want) })
	})
}

// TestViewsHealAfterACut: memberlist alone would never rejoin the two sides. Here views and states
// agree 15 s after the heal.
func TestViewsHealAfterACut(t *testing.T) {
	for _, cut := range []time.Duration{3 * time.Second, 30 * time.Second, 130 * time.Second,
		5 * time.Minute, time.Hour} {
		t.Run(cut.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				net := newNetwork(t)
				nodes := cluster(t, net, "a", "b", "c")
				net.Isolate("c", cut)
				healed := time.Now().Add(cut)
				if cut > 20*time.Second {
					within(t, 12*time.Second, "the cut to be noticed", func() error {
						return both(sameView(nodes[:2], "a", "b"), sameView(nodes[2:], "c"))
					})
				}
				nodes[0].spread(t, "here", 1)
				nodes[2].spread(t, "there", 2)
				time.Sleep(time.Until(healed))
				limit := 15 * time.Second
				if cut < 5*time.Second {
					// Nobody was missed, so nobody calls or greets: lost changes wait for up to two
					// push/pulls after one that hangs.
					limit = WAN().StreamTimeout + 2*WAN().PushPullInterval + 5*time.Second
				}
				within(t, limit, "views and states to heal", func() error {
					return both(sameView(nodes, "a", "b", "c"),
						sameState(nodes, map[string]int{"here": 1, "there": 2}))
				})
			})
		})
	}
}

// TestRegionsHealAfterACut: three regions of three nodes, one region cut off from both others.
func TestRegionsHealAfterACut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		var names []string
		for _, region := range []string{"r1", "r2", "r3"} {
			for i := range 3 {
				names = append(names, fmt.Sprintf("%s/n%d", region, i))
			}
		}
		nodes := cluster(t, net, names...)
		const cut = 5 * time.Minute
		for _, lone := range names[6:] {
			for _, other := range names[:6] {
				net.CutBoth(lone, other, cut)
			}
		}
		healed := time.Now().Add(cut)
		within(t, 20*time.Second, "the cut to be noticed", func() error {
			return both(sameView(nodes[:6], names[:6]...), sameView(nodes[6:], names[6:]...))
		})
		want := make(map[string]int)
		for i, n := range nodes {
			n.spread(t, n.cfg.Name, i)
			want[n.cfg.Name] = i
		}
		time.Sleep(time.Until(healed))
		within(t, 15*time.Second, "views to heal",
			func() error { return sameView(nodes, names...) })
		within(t, 15*time.Second, "states to heal", func() error { return sameState(nodes, want) })
	})
}

// TestOneWayCut: packets and streams get lost in one direction only.
func TestOneWayCut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b", "c")
		const cut = 3 * time.Minute
		net.Cut("c", "a", cut)
		net.Cut("c", "b", cut)
		nodes[0].spread(t, "key", 7)
		time.Sleep(cut)
		within(t, 15*time.Second, "views and states to heal", func() error {
			return both(sameView(nodes, "a", "b", "c"), sameState(nodes, map[string]int{"key": 7}))
		})
	})
}

func TestRestartWithRememberedPeersOnly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b", "c")
		remembered := nodes[2].Remembered()
		want := []string{addr(net, "a").String(), addr(net, "b").String()}
		if !slices.Equal(remembered, want) {
			t.Fatalf("remembers %v, want %v", remembered, want)
		}
		nodes[2].Close()
		nodes[0].Close()
		within(t, 15*time.Second, "the dead to be noticed",
			func() error { return sameView(nodes[1:2], "b") })
		c := start(t, net, "c", func(c *Config) {
			c.Remembered = append(remembered, "nonsense", addr(net, "c").String())
		})
		within(t, 2*time.Second, "the restarted node to be back", func() error {
			return sameView([]*node{nodes[1], c}, "b", "c")
		})
		if !c.log.has("not ip:port") {
			t.Error("a remembered peer that cannot be read was not reported")
		}
	})
}

// TestNameComesBackElsewhere: a node that is rescheduled keeps its name and gets another address.
func TestNameComesBackElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b", "c")
		nodes[2].Close()
		moved := start(t, net, "elsewhere", func(c *Config) {
			seeds(net, "a")(c)
			c.Name = "c"
		})
		within(t, 30*time.Second, "the moved node to be taken in", func() error {
			for _, n := range nodes[:2] {
				if i := slices.IndexFunc(n.Members(),
					func(m Member) bool {
						return m.Name == "c" && m.Addr == addr(net, "elsewhere")
					}); i < 0 {
					return fmt.Errorf("%s sees %v", n.cfg.Name, n.Members())
				}
			}
			return sameView([]*node{moved}, "a", "b", "c")
		})
	})
}

// TestANamesakeIsMet: a node joins others of which one has its name, and knows of that when its
// first calls are over. The others keep the first one.
func TestANamesakeIsMet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b")
		second := start(t, net, "elsewhere", func(c *Config) {
			seeds(net, "a")(c)
			c.Name = "b"
		})
		second.FirstCalls(t.Context())
		if m, met := second.Namesake(); !met || m.Name != "b" || m.Addr != addr(net, "b") {
			t.Errorf("it has met %+v, %v", m, met)
		}
		if m, met := nodes[0].Namesake(); met {
			t.Errorf("another one has met %+v", m)
		}
		if m := nodes[0].Members(); len(m) != 2 || m[1].Addr != addr(net, "b") {
			t.Errorf("the others see %v", m)
		}
	})
}

// TestQuickRestartIsSeen: a node is back, with other meta data, before anybody missed it.
func TestQuickRestartIsSeen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b", "c")
		nodes[2].Close()
		back := start(t, net, "c", func(c *Config) {
			seeds(net, "a")(c)
			c.Meta = []byte("new")
		})
		within(t, 5*time.Second, "the others to know", func() error {
			for _, n := range nodes[:2] {
				if m := n.Members(); len(m) != 3 || string(m[2].Meta) != "new" {
					return fmt.Errorf("%s sees %v", n.cfg.Name, m)
				}
			}
			return sameView([]*node{back}, "a", "b", "c")
		})
	})
}

func TestLeaveIsNoFailure(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b", "c")
		suite.Must(t, nodes[2].Leave(t.Context()))
		if err := nodes[2].Leave(t.Context()); err != nil {
			t.Errorf("second time: %v", err)
		}
		nodes[2].Close()
		within(t, time.Second, "the others to know",
			func() error { return sameView(nodes[:2], "a", "b") })
		for _, n := range nodes[:2] {
			if !n.log.has("member left") || n.log.has("member failed") {
				t.Errorf("%s took leaving for a failure", n.cfg.Name)
			}
			if slices.Contains(n.Remembered(), addr(net, "c").String()) {
				t.Errorf("%s still calls a node that has left", n.cfg.Name)
			}
		}
		back := start(t, net, "c", seeds(net, "a"))
		within(t, 5*time.Second, "the node to be back", func() error {
			return sameView([]*node{nodes[0], nodes[1], back}, "a", "b", "c")
		})
		back.Close()
		within(t, 15*time.Second, "a failure to be noticed",
			func() error { return sameView(nodes[:2], "a", "b") })
		within(t, 2*goodbyePatience, "the failure to be reported as one", func() error {
			if !nodes[0].log.has("member failed") {
				return errors.New("it was not")
			}
			return nil
		})
	})
}

// TestTwoLeaveAtOnce: of two nodes that leave at about the same time, each may take its leave from
// one that has left already. That is no failure of either.
func TestTwoLeaveAtOnce(t *testing.T) {
	for later := time.Duration(0); later < time.Second; later += 25 * time.Millisecond {
		t.Run(later.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { leaveAtOnce(t, later) })
		})
	}
}

// leaveAtOnce has two nodes leave, the second later. Neither has trouble, nor logs a failure.
func leaveAtOnce(t *testing.T, later time.Duration) {
	net := newNetwork(t)
	nodes := cluster(t, net, "a", "b")
	var done sync.WaitGroup
	for i, n := range nodes {
		done.Go(func() {
			time.Sleep(time.Duration(i) * later)
			if err := n.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	time.Sleep(10 * time.Second) // they answer until they are closed
	for _, n := range nodes {
		if n.log.has("member failed") {
			t.Errorf("%s takes the other's leaving for a failure", n.cfg.Name)
		}
	}
}

func TestLeaveIsBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		lone := start(t, net, "lone", nil)
		if err := lone.Leave(t.Context()); err != nil {
			t.Errorf("a node without company: %v", err)
		}
		closed := start(t, net, "closed", nil)
		closed.Close()
		if err := closed.Leave(t.Context()); err == nil {
			t.Error("a closed node has left")
		}
		hasty := cluster(t, net, "c", "d")[1]
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := hasty.Leave(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("leaving with an ended context: %v", err)
		}
		begin := time.Now()
		nodes := cluster(t, net, "a", "b")
		done := make(chan struct{})
		go func() { nodes[1].Leave(t.Context()); close(done) }()
		synctest.Wait()
		nodes[1].Close()
		<-done
		if took := time.Since(begin); took > 15*time.Second+leaveLimit {
			t.Errorf("leaving took %v", took)
		}
	})
}

// TestCloseEndsEverything: the bubble fails the test if a goroutine remains, even in the middle of
// a cut and of calls that hang.
func TestCloseEndsEverything(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		nodes := cluster(t, net, "a", "b", "c")
		net.Isolate("a", time.Hour)
		time.Sleep(20 * time.Second)
		for _, n := range nodes {
			begin := time.Now()
			n.Close()
			n.Close()
			if took := time.Since(begin); took > 2*WAN().ProbeInterval {
				t.Errorf("closing %s took %v of virtual time", n.cfg.Name, took)
			}
			n.state.mu.Lock() // a call of Merge from now on would hang the bubble
		}
	})
}

// TestRealSockets runs two nodes over the loopback interface.
func TestRealSockets(t *testing.T) {
	var seed []string
	for _, name := range []string{"a", "b"} {
		streams, err := net.Listen("tcp", "127.0.0.1:0")
		suite.Must(t, err)
		at := streams.Addr().(*net.TCPAddr).AddrPort()
		packets, err := net.ListenPacket("udp", at.String())
		suite.Must(t, err)
		timing := lan()
		timing.ProbeInterval, timing.ProbeTimeout = 100*time.Millisecond, 50*time.Millisecond
		met := make(chan struct{})
		g, err := Start(Config{
			Name: name, Packets: packets, Streams: streams, Dial: new(net.Dialer).DialContext,
			Advertise: at,
			Seeds:     seed, State: newMaxima(), Keys: [][]byte{make([]byte, 32)},
			Timing: timing,
			OnChange: func(members []Member) {
				if len(members) == 2 {
					signalOnce(met)
				}
			},
		})
		suite.Must(t, err)
		defer g.Close()
		defer func() { <-met }()
		seed = []string{at.String()}
	}
}

func signalOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// lan suits nodes of one region, with round trips below 10 ms. A dead node is
// found in 2 to 5 s.
func lan() Timing {
	t := WAN()
	t.ProbeInterval = 500 * time.Millisecond
	t.ProbeTimeout = 200 * time.Millisecond
	t.GossipInterval = 100 * time.Millisecond
	t.StreamTimeout = 2 * time.Second
	return t
}
