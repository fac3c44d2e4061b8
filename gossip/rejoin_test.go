package gossip

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestSeedsAreLookedUpAtEveryAttempt: a name that is unknown at the start, and then moves, is
// found.
func TestSeedsAreLookedUpAtEveryAttempt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		var known atomic.Pointer[netip.Addr]
		a := start(t, net, "a", func(c *Config) {
			c.Seeds = []string{"seed.example:7946"}
			c.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
				if ip := known.Load(); ip != nil && host == "seed.example" {
					return []netip.Addr{*ip}, nil
				}
				return nil, errors.New("no such host")
			}
		})
		b := start(t, net, "b", nil)
		time.Sleep(time.Minute)
		if err := sameView([]*node{a}, "a"); err != nil {
			t.Fatal(err)
		}
		if !a.log.has("cannot look up a seed") {
			t.Error("a seed that cannot be looked up was not reported")
		}
		ip := net.Host("b").IP()
		known.Store(&ip)
		within(t, 7*time.Second, "the seed to be found",
			func() error { return sameView([]*node{a, b}, "a", "b") })
	})
}

// TestCallsThatHangHoldNobodyUp: a lookup and two dials hang; a seed that answers is joined at
// once.
func TestCallsThatHangHoldNobodyUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		b := start(t, net, "b", nil)
		for _, gone := range []string{"gone1", "gone2"} {
			net.Host(gone)
			net.Cut("a", gone, time.Hour)
		}
		a := start(t, net, "a", func(c *Config) {
			c.Seeds = []string{"slow.example:7946"}
			seeds(net, "gone1", "b", "gone2")(c)
			c.Remembered = []string{addr(net, "gone1").String()}
			c.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		within(t, time.Second, "the seed that answers",
			func() error { return sameView([]*node{a, b}, "a", "b") })
		time.Sleep(time.Minute)
		if got := a.callsUnderWay(); got > 2 {
			t.Errorf("%d calls under way, want one for each who hangs", got)
		}
	})
}

// TestAnAddressThatIsNoMembersIsLeftInPeace: a load balancer in front of the seeds answers, but no
// member has its address.
func TestAnAddressThatIsNoMembersIsLeftInPeace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var calls int
		balancer := netip.MustParseAddrPort("10.1.1.1:7946")
		log := slog.New(slog.DiscardHandler)
		cfg := Config{Seeds: []string{balancer.String()}, Logger: log,
			Advertise: peerAt(1)}.withDefaults()
		c := newCaller(cfg, newRoster(Config{Name: "a", Logger: log}), func(string) error {
			calls++
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		c.run(ctx)
		if calls < 15 || calls > 21 {
			t.Errorf("%d calls in 10 minutes, want one about every %v", calls, answerHolds)
		}
		if got := c.succeeded.Load(); got != uint64(calls) || c.attempted.Load() != got {
			t.Errorf("counted %d of %d attempts", got, calls)
		}
	})
}

// TestExchangesUnderWayAreBounded: hundreds of addresses that hang.
func TestExchangesUnderWayAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		cfg := Config{Logger: log, Advertise: peerAt(0)}.withDefaults()
		var under, most atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		r := newRoster(Config{Name: "a", Logger: log})
		c := newCaller(cfg, r, func(string) error {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return errors.New("no answer")
		})
		for i := range maxRemembered {
			r.recall(peerAt(i + 1))
		}
		c.run(ctx)
		if got := most.Load(); got != maxExchanges {
			t.Errorf("at most %d exchanges were under way, want %d", got, maxExchanges)
		}
	})
}

// TestGreetingsStayFewInALargeCluster: about greetShare members greet one newcomer; all members
// greet many newcomers.
func TestGreetingsStayFewInALargeCluster(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		const members, trials = 200, 2000
		for _, tc := range []struct{ newcomers, least, most int }{
			{1, trials * greetShare / members / 2, trials * greetShare / members * 2},
			{100, trials * greetFanout, trials * greetFanout},
		} {
			calls := new(atomic.Int64)
			r := newRoster(Config{Name: "a", Logger: log})
			c := newCaller(Config{Logger: log}.withDefaults(), r, func(string) error {
				calls.Add(1)
				return nil
			})
			for i := range members {
				name := peerAt(i).String()
				r.members[name] = Member{Name: name, Addr: peerAt(i)}
			}
			for range trials {
				for i := range tc.newcomers {
					r.newcomers[peerAt(i).String()] = peerAt(i)
				}
				c.greet()
				c.tasks.Wait()
			}
			if got := int(calls.Load()); got < tc.least || got > tc.most {
				t.Errorf("%d newcomers: %d greetings in %d trials, want %d to %d", tc.newcomers,
					got, trials, tc.least, tc.most)
			}
		}
	})
}

// TestASeedThatLeftIsCalledAgain: a seed says goodbye soon after the other nodes had called it. It
// comes back knowing no other node.
func TestASeedThatLeftIsCalledAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		seed := start(t, net, "seed", func(*Config) {})
		others := []*node{start(t, net, "a", seeds(net, "seed")),
			start(t, net, "b", seeds(net, "seed"))}
		within(t, 5*time.Second, "all to meet",
			func() error { return sameView(append(others, seed), "a", "b", "seed") })
		suite.Must(t, seed.Leave(t.Context()))
		seed.Close()
		time.Sleep(time.Second)
		back := start(t, net, "seed", func(*Config) {})
		within(t, 15*time.Second, "the seed to be seen",
			func() error { return sameView(append(others, back), "a", "b", "seed") })
	})
}
