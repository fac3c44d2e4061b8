package client_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/client"
)

// Clients that flood a bucket and prefetch from it never admit more than the limit together. What
// they give back when they close can be admitted.
func TestClientsKeepTheLimit(t *testing.T) {
	const units = 1000
	for _, kind := range []string{"fixed_window", "sliding_window_counter"} {
		t.Run(kind, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, s *servers.Server) {
				node := startNode(t, s, limit(kind, units, roomyWindow(), prefetched))
				var admitted, fromMemory atomic.Int64
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						c := client.New(node.dial(t), client.Options{Prefetch: true})
						admitted.Add(flood(t, c.Bucket("api", account), 2, 20))
						if err := c.Close(); err != nil {
							t.Error(err)
						}
						fromMemory.Add(wantSettled(t, c).Admitted)
					})
				}
				all.Wait()
				if admitted.Load() > units {
					t.Errorf("%d of %d units admitted", admitted.Load(), units)
				}
				if fromMemory.Load() == 0 {
					t.Error("nothing was admitted from memory: the test shows nothing")
				}
				t.Logf("%d admitted, %d of them from memory", admitted.Load(), fromMemory.Load())
				plain := client.New(node.dial(t), client.Options{})
				admitted.Add(flood(t, plain.Bucket("api", account), 1, 1))
				if got := admitted.Load(); got > units || got < 990 {
					t.Errorf("%d of %d units admitted in all, want 990 at least", got, units)
				}
			})
		})
	}
}

// wantSettled fails the test unless all that a closed client took is accounted for.
func wantSettled(t testing.TB, c *client.Client) client.Stats {
	t.Helper()
	s := c.Stats()
	if s.Taken != s.Admitted+s.Returned+s.Lost {
		t.Errorf("a closed client took %d, admitted %d, returned %d and lost %d", s.Taken, s.Admitted,
			s.Returned, s.Lost)
	}
	return s
}
