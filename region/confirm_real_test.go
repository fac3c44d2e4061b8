package region_test

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

// harmless are events that change master_replid and lose nothing. Each returns the server that nodes
// use from then on.
var harmless = map[string]func(t *testing.T, s *servers.Server, admin *redis.Client) *servers.Server{
	"a first replica": func(t *testing.T, s *servers.Server, _ *redis.Client) *servers.Server {
		attach(t, s)
		return s
	},
	"a backup by SYNC": func(t *testing.T, s *servers.Server, _ *redis.Client) *servers.Server {
		conn, err := net.Dial("tcp", s.URL[len("redis://"):])
		suite.Must(t, err)
		defer conn.Close()
		if _, err := conn.Write([]byte("SYNC\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(conn).ReadString('R'); err != nil { // of REDIS, with which the file begins
			t.Fatal(err)
		}
		return s
	},
	"an expired backlog": func(t *testing.T, s *servers.Server, admin *redis.Client) *servers.Server {
		replica := attach(t, s)
		suite.Must(t, admin.ConfigSet(t.Context(), "repl-backlog-ttl", "1").Err())
		before := replid(t, admin)
		suite.Must(t, replica.Close())
		suite.Eventually(t, "the backlog is gone", func() bool { return replid(t, admin) != before })
		return s
	},
	"a restart that keeps all": func(t *testing.T, s *servers.Server, admin *redis.Client) *servers.Server {
		dir := admin.ConfigGet(t.Context(), "dir").Val()["dir"]
		admin.Do(t.Context(), "SHUTDOWN", "SAVE") // it has nothing to answer with
		return fixtures.Process(t, "--dir", dir)
	},
	"a replica that has all is promoted": func(t *testing.T, s *servers.Server, admin *redis.Client) *servers.Server {
		replica := attach(t, s)
		// Without requests a node still asks for the time; so the replica must have it at the end.
		at := fixtures.Operator(t, replica)
		suite.Must(t, admin.Do(t.Context(), "CLIENT", "PAUSE", "10000", "WRITE").Err())
		if n, err := admin.Wait(t.Context(), 1, suite.Patience).Result(); err != nil || n != 1 {
			t.Fatalf("%d replicas have everything: %v", n, err)
		}
		suite.Must(t, at.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
		return replica
	},
}

func attach(t *testing.T, s *servers.Server) *servers.Server {
	t.Helper()
	replica := fixtures.Process(t, "--replicaof", strings.ReplaceAll(s.URL[len("redis://"):], ":", " "))
	at := fixtures.Operator(t, replica)
	suite.Eventually(t, "the replica has the server's data", func() bool {
		return strings.Contains(at.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return replica
}

func replid(t *testing.T, admin *redis.Client) string {
	t.Helper()
	_, rest, _ := strings.Cut(admin.Info(t.Context(), "replication").Val(), "master_replid:")
	id, _, _ := strings.Cut(rest, "\r")
	return id
}

// TestHarmlessEventsAreNoLosses: under load the region goes on, counts no loss, and what was used of
// long and short windows stays used.
func TestHarmlessEventsAreNoLosses(t *testing.T) {
	t.Parallel()
	for name, happens := range harmless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fixtures.Process(t)
			admin := fixtures.Operator(t, s)
			c, r := inRealTime(t, s, day, "name: brief, domain: brief, limit: 1000000, window: 1m, on_store_failure: deny")
			long, brief := request("a"), admit.Request{Domain: "brief", Descriptors: request("a").Descriptors, Cost: 1}
			c.admits(long, 40)
			ctx, stop := context.WithCancel(t.Context())
			var load sync.WaitGroup
			for _, n := range c.running {
				load.Go(func() {
					for ctx.Err() == nil {
						if d := n.check(t, brief); d.Reason == admit.Recovering {
							t.Errorf("%s: %+v", n.name, d)
							return
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			before, generation := replid(t, admin), c.running["us/n1"].Status().Generation
			now := happens(t, s, admin)
			if now != s {
				r.lead(now.URL)
			}
			if replid(t, fixtures.Operator(t, now)) == before {
				t.Fatal("master_replid is the same")
			}
			happened := time.Now()
			for _, n := range c.running {
				c.within(10*time.Second, n.name+" to stand under another generation and to admit", func() bool {
					return n.Status().Generation > generation && n.check(t, brief).Allowed
				})
			}
			t.Logf("both nodes admit again %v later", time.Since(happened).Round(time.Millisecond))
			stop()
			load.Wait()
			if got := c.exhausts(long); got != 160 {
				t.Errorf("%d admitted after 40 of 200", got)
			}
			for _, n := range c.running {
				if s := n.Status().Store; s.Losses != 0 || !s.LastLoss.IsZero() {
					t.Errorf("%s counts a loss: %+v", n.name, s)
				}
			}
		})
	}
}
