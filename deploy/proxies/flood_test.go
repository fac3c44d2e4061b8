//go:build proxies

package proxies

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// A flood is a closed loop of many connections: each sends as soon as it is answered.
const (
	floodFor         = 8 * time.Second
	floodConnections = 1000
)

// flood is one kind, which meets one limit of limits.yaml.
type flood struct {
	name         string
	limit        float64 // a minute
	addresses    int
	keys         [2]string // of the API: while the node answers, and while it is stopped
	method, path string
}

var floods = []flood{
	{"one address", 1000, 1, [2]string{}, "GET", "/page"},
	{"200 addresses, one API key", 300, 200, [2]string{"key-of-acme", "key-of-globex"}, "GET", "/page"},
	{"POST /login", 10, 1, [2]string{}, "POST", "/login"},
}

// The bounds of the recipes, each for one key. A minute's limit is filled by and by; nginx counts in
// whole requests a second or minute, and one more than its burst.
func limitReq(limit float64, over time.Duration) float64 {
	return limit + 1 + 1.1*limit*over.Minutes()
}

// HAProxy's processors may each count one more at the same moment.
func stickTable(limit float64, _ time.Duration) float64 { return 2*limit + 64 }

// seen is what the clients of a flood saw.
type seen struct {
	mu                                   sync.Mutex
	allowed, undecided, denied, unserved int
	latencies                            []time.Duration
}

func (s *seen) note(code int, decided bool, latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case code == http.StatusOK && decided:
		s.allowed++
	case code == http.StatusOK:
		s.undecided++
	case code == http.StatusTooManyRequests:
		s.denied++
	default:
		s.unserved++
	}
	s.latencies = append(s.latencies, latency)
}

func (s *seen) String() string {
	slices.Sort(s.latencies)
	at := func(part int) time.Duration {
		if len(s.latencies) == 0 {
			return 0
		}
		return s.latencies[(len(s.latencies)-1)*part/100].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d requests, %d passed undecided, %d allowed, %d denied, %d others; p50 %v, p99 %v",
		len(s.latencies), s.undecided, s.allowed, s.denied, s.unserved, at(50), at(99))
}

// TestProxiesBoundFloods prints what passes undecided in floods, while the node answers and while it
// is stopped. A proxy that has a bound keeps it.
func TestProxiesBoundFloods(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(recipes)) {
		t.Run(name, func(t *testing.T) {
			r := recipes[name]
			s := raise(t, r, limitsOfFolder(t))
			for i, f := range floods {
				for turn, state := range []string{"answers", "stopped"} {
					if turn == 1 {
						s.stop(t)
					}
					began := time.Now()
					got := s.flood(t, f, byte(10*i+turn), f.keys[turn])
					took := time.Since(began)
					if turn == 1 {
						suite.Must(t, s.node.Resume())
						s.client("127.0.0.12").decide(t, "GET", "/page")
					}
					fmt.Printf("%s, %s, node %s: %v\n", name, f.name, state, got)
					if r.bound != nil && float64(got.undecided) > r.bound(f.limit, took) {
						t.Errorf("%s, node %s: %d passed undecided, and the bound is %.0f", f.name, state,
							got.undecided, r.bound(f.limit, took))
					}
					if turn == 1 && got.undecided == 0 {
						t.Errorf("%s: nothing passed though nobody decided", f.name)
					}
				}
			}
		})
	}
}

// stop stops the node, which goes on for a moment after it was told to.
func (s *stage) stop(t *testing.T) {
	t.Helper()
	suite.Must(t, s.node.Pause())
	c := &http.Client{Timeout: 200 * time.Millisecond}
	suite.Eventually(t, "the node is stopped", func() bool {
		a, err := c.Get("http://" + s.node.HTTP + "/livez")
		if err == nil {
			a.Body.Close()
		}
		return err != nil
	})
}

// flood floods the proxy from addresses in 127.net.0.0/16.
func (s *stage) flood(t *testing.T, f flood, network byte, key string) *seen {
	var got seen
	var all sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), floodFor)
	defer stop()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n", f.method, f.path, s.address,
		key)
	if f.method == "POST" {
		request += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(postBody), postBody)
	} else {
		request += "\r\n"
	}
	for i := range floodConnections {
		from := net.IPv4(127, 100+network, 0, byte(1+i%f.addresses))
		all.Go(func() {
			for ctx.Err() == nil {
				s.floodOver(ctx, from, request, &got)
			}
		})
	}
	all.Wait()
	return &got
}

// floodOver sends over one connection until it ends, or the flood does.
func (s *stage) floodOver(ctx context.Context, from net.IP, request string, got *seen) {
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for ctx.Err() == nil {
		began := time.Now()
		_ = c.SetDeadline(began.Add(answerTimeout))
		if _, err := io.WriteString(c, request); err != nil {
			return
		}
		a, err := http.ReadResponse(in, nil)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, a.Body)
		got.note(a.StatusCode, answer{header: a.Header}.decided(), time.Since(began))
		if err != nil || a.Close {
			return
		}
	}
}
