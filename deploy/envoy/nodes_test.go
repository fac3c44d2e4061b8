//go:build envoy

package envoy

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// TestNodes: of two nodes one is gone, or hangs. Envoy asks the other one. If both hang, nobody waits
// for them after the first second.
func TestNodes(t *testing.T) {
	region := startNodes(t, "limits.yaml", 2)
	p := startEnvoy(t, "envoy.yaml", startApp(t), addresses(region))
	p.awaitHealthy(t, 2)
	first, s := region.Nodes[0], &stage{p, region.Nodes[0]}
	t.Run("gone", func(t *testing.T) {
		first.Kill()
		got := s.until(t, 10, 1)
		got.print("of two nodes one gone")
		if n := p.counters(t)[callsTimedOut]; n != 0 || got.undecided > got.requests/2 {
			t.Errorf("%d calls waited for a node that is gone: %+v", n, got)
		}
		suite.Must(t, first.Start(t.Context()))
		s.recovers(t)
	})
	for what, hanging := range map[string][]*process.Node{"of two nodes one hangs": region.Nodes[:1],
		"two nodes hang": region.Nodes} {
		t.Run(what, func(t *testing.T) {
			before := p.counters(t)[callsTimedOut]
			for _, n := range hanging {
				suite.Must(t, n.Pause())
			}
			got := s.until(t, 20, 2-len(hanging))
			got.print(what)
			// Without outlier detection 64 of these requests wait.
			if n := p.counters(t)[callsTimedOut] - before; n < 5 || n > 48 {
				t.Errorf("%d calls timed out: %+v", n, got)
			}
			for _, n := range hanging {
				suite.Must(t, n.Resume())
			}
			s.recovers(t)
		})
	}
}

// addresses returns what a region's nodes serve Envoys at.
func addresses(r *process.Region) (all []string) {
	for _, n := range r.Nodes {
		all = append(all, n.GRPC)
	}
	return all
}

// recovers waits until every request is decided again.
func (s *stage) recovers(t *testing.T) {
	t.Helper()
	s.awaitHealthy(t, 2)
	suite.Eventually(t, "every request is decided", func() bool { return s.until(t, 30, 2).undecided == 0 })
}

// waited is what clients saw until Envoy knew better.
type waited struct {
	requests, undecided, late int // late: above half a second
	slowest, last             time.Duration
}

func (w waited) print(what string) {
	fmt.Printf("%s: of %d requests %d passed undecided, %d waited for more than 0.5 s, at most %v, the last of them %v after it\n",
		what, w.requests, w.undecided, w.late, w.slowest.Round(time.Millisecond), w.last.Round(time.Millisecond))
}

// until has 16 clients at addresses of their own ask until Envoy takes so many nodes for healthy,
// and then until each has been answered 20 times more. All are answered by the app.
func (s *stage) until(t *testing.T, net byte, healthy int) (all waited) {
	t.Helper()
	var mu sync.Mutex
	var work sync.WaitGroup
	begun := time.Now()
	for i := range 16 {
		c := s.client(t, fmt.Sprintf("127.0.%d.%d", net, 1+i))
		work.Go(func() {
			for more := 20; more > 0; {
				a, err := c.ask(t.Context(), "GET", "/page")
				mu.Lock()
				all.note(a, begun)
				mu.Unlock()
				if err != nil || a.code != http.StatusOK {
					t.Errorf("%v, %v", a, err)
					return
				}
				if n, err := s.gauge(t.Context(), "cluster.quotad.membership_healthy"); err == nil && n == healthy {
					more--
				}
				time.Sleep(20 * time.Millisecond) // fifty requests a second
			}
		})
	}
	work.Wait()
	return all
}

func (w *waited) note(a answer, begun time.Time) {
	w.requests++
	if !a.decided() {
		w.undecided++
	}
	w.slowest = max(w.slowest, a.took)
	if a.took > 500*time.Millisecond {
		w.late++
		w.last = time.Since(begun)
	}
}
