package client_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Clients that flood a bucket and prefetch from it never admit more than the limit together. What
// they give back when they close can be admitted.
func TestClientsKeepTheLimit(t *testing.T) {
	const units = 1000
	for _, kind := range []string{"fixed_window", "sliding_window_counter"} {
		t.Run(kind, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, s *servers.Server) {
				node := startNode(t, s, limit(kind, units, fronts.RoomyWindow(), prefetched))
				var admitted, fromMemory atomic.Int64
				var all sync.WaitGroup
				for n := range 8 {
					c := client.New(node.dial(t), patient)
					b := c.Bucket("api", account)
					if n == 0 {
						admitted.Add(spendFromMemory(t, b))
					}
					all.Go(func() {
						admitted.Add(flood(t, b, 2, 20))
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
				admitted.Add(drain(t, node, 990-admitted.Load()))
				if got := admitted.Load(); got > units || got < 990 {
					t.Errorf("%d of %d units admitted in all, want 990 at least", got, units)
				}
			})
		})
	}
}

// Checks that go together never admit more than the limit, and not less.
func TestBatchesKeepTheLimit(t *testing.T) {
	const units, callers, calls = 500, 64, 16
	node := startNode(t, fixtures.Kinds["embedded"](t), limit("fixed_window", units, fronts.RoomyWindow(), ""))
	c := dialed(t, client.Options{Timeout: patient.Timeout}, node.at)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				d, err := c.Check(t.Context(), request(1))
				if err != nil || d.Limit != "account" || d.Epoch == "" {
					t.Errorf("%+v, %v", d, err)
				}
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if admitted.Load() != units || c.Stats().Batches == 0 {
		t.Errorf("%d of %d units admitted: %+v", admitted.Load(), units, c.Stats())
	}
	if _, err := c.Check(t.Context(), client.Request{}); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(err.Error(), "domain: is missing") {
		t.Errorf("a request without a domain: %v", err)
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

// In windows that end while clients hold units, none admits more than the limit: each decision
// belongs to the cell that it names, and so does each unit that it spent.
func TestClientsKeepTheLimitAtTheEdges(t *testing.T) {
	const units, window = 200, 300 * time.Millisecond
	for _, kind := range []string{"fixed_window", "sliding_window_counter"} {
		t.Run(kind, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, s *servers.Server) {
				node := startNode(t, s, limit(kind, units, window, prefetched))
				// Until enough was seen.
				ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
				defer cancel()
				var mu sync.Mutex
				cells, fromMemory := map[int64]int64{}, 0
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						c := client.New(node.dial(t), patient)
						b := c.Bucket("api", account)
						for ctx.Err() == nil {
							d, err := b.Allow(t.Context(), 1)
							if err != nil {
								t.Error(err)
								break
							}
							mu.Lock()
							if d.Allowed {
								cells[d.Cell]++
							}
							if d.Allowed && d.FromMemory {
								fromMemory++
							}
							if len(cells) > 6 && fromMemory > units/4 {
								cancel()
							}
							mu.Unlock()
							if d.Allowed && d.Cell != d.AtUs/window.Microseconds() {
								t.Errorf("admitted at %d, in cell %d", d.AtUs, d.Cell)
							}
							if !d.Allowed { // from memory, so that this loop would never wait
								time.Sleep(100 * time.Microsecond)
							}
						}
						closed(t, c)
					})
				}
				all.Wait()
				for cell, admitted := range cells {
					if admitted > units {
						t.Errorf("cell %d: %d of %d units admitted", cell, admitted, units)
					}
				}
				if len(cells) < 6 || fromMemory == 0 {
					t.Errorf("%d cells, %d admitted from memory: the test shows nothing", len(cells), fromMemory)
				}
				t.Logf("%d cells, %d admitted from memory: %v", len(cells), fromMemory, cells)
			})
		})
	}
}

// A client that ends without Close loses what it held, and no more.
func TestAKilledClientLosesWhatItHeld(t *testing.T) {
	const units = 1000
	eachRedis(t, func(t *testing.T, s *servers.Server) {
		node := startNode(t, s, limit("fixed_window", units, fronts.RoomyWindow(), prefetched))
		conn := node.dial(t)
		killed := client.New(conn, patient)
		b := killed.Bucket("api", account)
		if d := allow(t, b, 100); !d.Allowed {
			t.Fatalf("%+v", d)
		}
		admitted := 100 + spendFromMemory(t, b)
		if err := conn.Close(); err != nil { // nothing that it says from now on is heard
			t.Error(err)
		}
		if err := killed.Close(); err == nil {
			t.Error("units were given back over a closed connection")
		}
		lost := killed.Stats().Lost
		if lost == 0 || lost > 250 {
			t.Errorf("%d units lost, want a fourth of 1,000 at most", lost)
		}
		admitted += drain(t, node, 990-lost-admitted)
		// What was on its way back when the connection was closed is lost to the client, and may be
		// admitted again. Units that a node had charged for a call whose answer was on its way are
		// lost and the client does not know of them: a fourth of what was free at most.
		if admitted > units || admitted+lost < 990-units/4 {
			t.Errorf("%d admitted and %d lost of %d", admitted, lost, units)
		}
	})
}

// Where a limit is exact, and where none applies, a node refuses to give units, and each request is
// asked about.
func TestExactLimitsOfANode(t *testing.T) {
	node := startNode(t, fixtures.Kinds["embedded"](t), limit("fixed_window", 1000, fronts.RoomyWindow(), ""))
	c := client.New(node.dial(t), patient)
	if got := flood(t, c.Bucket("api", account), 2, 10); got != 1000 {
		t.Errorf("%d admitted", got)
	}
	if s := closed(t, c); s.Exact == 0 || s.Taken != 0 {
		t.Errorf("%+v", s)
	}
	rpc := quotadv1.NewQuotaServiceClient(node.dial(t))
	for domain, says := range map[string]string{"api": "limit account is exact",
		"web": "no limit applies"} {
		_, err := rpc.Take(t.Context(), &quotadv1.TakeRequest{Domain: domain, Descriptors: account,
			Units: 8})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", domain, err)
		}
	}
	for _, bad := range []*quotadv1.TakeRequest{{Domain: "api", Units: -1},
		{Domain: "api", Units: 1<<51 + 1}, {Domain: "api", Denied: -1},
		{Domain: "api", Admitted: 1 << 60}, {Units: 8}} {
		if _, err := rpc.Take(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
