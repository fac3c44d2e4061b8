package region_test

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/store"
)

// day is a limit whose window does not end in a test of real time.
const day = "name: long, limit: 200, window: 24h, on_store_failure: deny"

// inRealTime makes a region of two nodes on a redis-server behind a relay, in real time.
func inRealTime(t *testing.T, s *servers.Server, limits ...string) (c *cluster, r *relay) {
	t.Helper()
	r = startRelay(t)
	c = newCluster(t, t.TempDir(), "us/n1", "us/n2")
	c.servers["us"], c.real = &servers.Server{URL: r.url()}, true
	r.lead(s.URL)
	t.Cleanup(c.close)
	d := documents.Parse(t, 1, alone, limits...)
	c.start("us/n1", d)
	c.start("us/n2", d)
	c.meet()
	return c, r
}

// admits makes requests at both nodes in turn, and fails if the store does not admit one.
func (c *cluster) admits(q admit.Request, requests int) {
	c.t.Helper()
	for i := range requests {
		n := c.running[[]string{"us/n1", "us/n2"}[i%2]]
		if d := n.check(c.t, q); !d.Allowed || d.Reason != admit.WithinLimit {
			c.t.Fatalf("%s, request %d: %+v", n.name, i, d)
		}
	}
}

// exhausts makes requests until the limit denies one, and returns how many were admitted.
func (c *cluster) exhausts(q admit.Request) (admitted int) {
	c.t.Helper()
	c.within(20*time.Second, "the limit to be spent", func() bool {
		for _, n := range c.running {
			for {
				d := n.check(c.t, q)
				if d.Allowed {
					admitted++
					continue
				}
				if d.Reason == admit.OverLimit {
					return true
				}
				break
			}
		}
		return false
	})
	return admitted
}

// copiers make a copy of a server's data at a moment, on another server. Each knows the server
// before the region starts, and returns the function that makes the copy.
var copiers = map[string]func(t *testing.T, s *servers.Server) func() *servers.Server{
	"a copy of all keys": func(t *testing.T, s *servers.Server) func() *servers.Server {
		return func() *servers.Server {
			other := fixtures.Process(t)
			from, to := fixtures.Operator(t, s), fixtures.Operator(t, other)
			for _, key := range from.Keys(t.Context(), "*").Val() {
				left := max(from.PTTL(t.Context(), key).Val(), 0)
				suite.Must(t, to.Restore(t.Context(), key, left,
					from.Dump(t.Context(), key).Val()).Err())
			}
			return other
		}
	},
	// A server without replicas changes its master_replid when the first replica connects, so the
	// replica must be there before.
	"a replica that is promoted": func(t *testing.T, s *servers.Server) func() *servers.Server {
		replica := fixtures.Process(t, "--replicaof", strings.ReplaceAll(s.URL[len("redis://"):],
			":", " "))
		at := fixtures.Operator(t, replica)
		suite.Eventually(t, "the replica has the server's data", func() bool {
			return strings.Contains(at.Info(t.Context(), "replication").Val(), "master_link_status:up")
		})
		return func() *servers.Server {
			if n, err := fixtures.Operator(t, s).Wait(t.Context(), 1,
				suite.Patience).Result(); err != nil || n != 1 {
				t.Fatalf("%d replicas have everything: %v", n, err)
			}
			suite.Must(t, at.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
			return replica
		}
	},
}

// The first batch notices a server with an old copy of the region's data, including its token.
// Nothing of the batch counts. Long windows get back what was used since the copy, and short ones
// close.
func TestStaleCopy(t *testing.T) {
	t.Parallel()
	for name, prepare := range copiers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			short := "name: minute, domain: short, limit: 200, window: 1m, on_store_failure: deny"
			s := fixtures.Process(t)
			copied := prepare(t, s)
			c, r := inRealTime(t, s, day, short)
			long, minute := request("a"), admit.Request{Domain: "short",
				Descriptors: request("a").Descriptors, Cost: 1}
			c.admits(long, 10)
			c.admits(minute, 2)
			stale := copied()
			c.admits(long, 30)
			// the generation of both nodes, which notice by themselves as well
			generation := c.running["us/n1"].Status().Generation
			r.lead(stale.URL)
			for _, n := range c.running {
				c.within(10*time.Second, n.name+" to stand under another generation", func() bool {
					d := n.check(t, long)
					if d.Allowed && n.Status().Generation == generation {
						t.Errorf("%s, admitted by an old copy: %+v", n.name, d)
					}
					return n.Status().Generation > generation
				})
			}
			if d := c.running["us/n1"].check(t, minute); d.Allowed ||
				d.Reason != admit.Recovering || d.Share != 0 {
				t.Errorf("a short window of an old copy: %+v", d)
			}
			c.running["us/n1"].check(t, long) // has the bucket restored
			used := c.running["us/n1"].state(t, long).Used
			if used < 40 || used > 45 {
				t.Errorf("used %d, of which 40 were admitted before", used)
			}
			if got := quantity.Units(c.exhausts(long)); got != 200-used {
				t.Errorf("%d admitted of 200 of which %d were used", got, used)
			}
		})
	}
}

// A Redis ends and starts again without its data, and two nodes keep running. They admit exactly
// the limit.
func TestRestartOfRedis(t *testing.T) {
	t.Parallel()
	s := fixtures.Process(t)
	c, r := inRealTime(t, s, day)
	c.admits(request("a"), 40)
	suite.Must(t, s.Close())
	if d := c.running["us/n1"].check(t, request("a")); d.Reason != admit.StoreFailure {
		t.Errorf("the server is gone: %+v", d)
	}
	r.lead(fixtures.Process(t).URL)
	if got := c.exhausts(request("a")); got != 160 {
		t.Errorf("%d admitted after 40 of 200", got)
	}
	for _, n := range c.running {
		if got := n.counter(t, "units_borrowed"); got != 0 {
			t.Errorf("%s borrowed %d of nobody", n.name, got)
		}
	}
}

// Missing scripts are not a loss, and evicted buckets are not a loss of the store. An evicted
// bucket is restored.
func TestScriptsAndBucketsThatVanish(t *testing.T) {
	t.Parallel()
	s := fixtures.Process(t)
	c, _ := inRealTime(t, s, day)
	c.admits(request("a"), 40)
	generation := c.running["us/n1"].Status().Generation
	ctx, at := t.Context(), fixtures.Operator(t, s)
	suite.Must(t, at.ScriptFlush(ctx).Err())
	c.admits(request("a"), 40)
	if got := c.running["us/n1"].Status().Generation; got != generation {
		t.Errorf("generation %d, was %d", got, generation)
	}
	evict(ctx, t, at)
	if got := c.exhausts(request("a")); got != 120 {
		t.Errorf("%d admitted after 80 of 200", got)
	}
	if s := c.running["us/n1"].Status(); s.Generation == generation || !s.Store.LastLoss.IsZero() {
		t.Errorf("generation %d, was %d; last loss %v", s.Generation, generation, s.Store.LastLoss)
	}
}

// evict makes a server drop every key that expires, as it may do when its memory is full.
func evict(ctx context.Context, t *testing.T, at *redis.Client) {
	t.Helper()
	for _, set := range [][2]string{{"maxmemory-policy", "volatile-random"}, {"maxmemory", "1"}} {
		suite.Must(t, at.ConfigSet(ctx, set[0], set[1]).Err())
	}
	if err := at.Set(ctx, "anything", 1, 0).Err(); err == nil || !strings.Contains(err.Error(),
		"OOM") {
		t.Fatalf("there is memory left: %v", err)
	}
	suite.Must(t, at.ConfigSet(ctx, "maxmemory", "0").Err())
	if keys := at.Keys(ctx, "*:b:*").Val(); len(keys) > 0 {
		t.Fatalf("not evicted: %q", keys)
	}
}

// When a Redis is stopped, requests are decided without it, after the first one at once. When it
// goes on, a probe lets requests through. The requests that it got meanwhile count as used, though
// they were answered as failures.
func TestRedisThatStandsStill(t *testing.T) {
	t.Parallel()
	s := fixtures.Process(t)
	c, _ := inRealTime(t, s, day)
	n, q := c.running["us/n1"], request("a")
	c.admits(q, 10)
	pid := pidOf(t, fixtures.Operator(t, s))
	suite.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	asked := 0
	suite.Eventually(t, "the breaker trips", func() bool {
		asked++ // on a busy machine it is not known at once that the store does not answer
		n.check(t, q)
		return n.limiter.Queue().OutOfReach()[store.Whole]
	})
	for i := range 50 {
		if d := n.check(t, q); d.Reason != admit.StoreFailure {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	suite.Must(t, syscall.Kill(pid, syscall.SIGCONT))
	c.within(10*time.Second, "a probe to be answered",
		func() bool { return !n.limiter.Queue().OutOfReach()[store.Whole] })
	admitted := c.exhausts(q)
	if admitted > 190 || admitted < 190-50-asked {
		t.Errorf("%d admitted after 10 of 200", admitted)
	}
}

// pidOf returns the process of a server that this test started.
func pidOf(t *testing.T, at *redis.Client) int {
	t.Helper()
	_, rest, _ := strings.Cut(at.Info(t.Context(), "server").Val(), "process_id:")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\r\n", 2)[0]))
	if err != nil || pid <= 1 {
		t.Fatalf("process %d: %v", pid, err)
	}
	return pid
}
