package envoy

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// script is a server that does what a test says, and writes down what it hears.
type script struct {
	rlqsv3.UnimplementedRateLimitQuotaServiceServer
	t     *testing.T
	begun time.Time
	ends  chan struct{} // closed: streams end

	mu      sync.Mutex
	heard   []string
	streams int
	open    rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasServer // the last
	refuses bool                                                     // streams, at once
	deaf    bool                                                     // it reads nothing
}

// StreamRateLimitQuotas implements the service.
func (s *script) StreamRateLimitQuotas(
	stream rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	s.mu.Lock()
	s.streams++
	number, refuses, deaf, ends := s.streams, s.refuses, s.deaf, s.ends
	s.open = stream
	s.mu.Unlock()
	if refuses {
		return status.Error(codes.Unavailable, "not now")
	}
	if deaf {
		<-stream.Context().Done()
		return nil
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.heard = append(s.heard, fmt.Sprintf("%v stream %d %s",
				time.Since(s.begun).Round(time.Second), number, said(m)))
			s.mu.Unlock()
		}
	}()
	select {
	case <-over:
	case <-ends:
	}
	return nil
}

// say sends actions on the last stream.
func (s *script) say(all ...*action) {
	s.t.Helper()
	s.mu.Lock()
	stream := s.open
	s.mu.Unlock()
	if err := stream.Send(message(all...)); err != nil {
		s.t.Error(err)
	}
	synctest.Wait()
}

// wantHeard wants what was heard since the last time.
func (s *script) wantHeard(want ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.heard, want) {
		s.t.Errorf("heard\n%q\nwant\n%q", s.heard, want)
	}
	s.heard = nil
}

// change changes what the server does.
func (s *script) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// scripted runs a test of an Envoy on a scripted server, in virtual time.
func scripted(t *testing.T, f func(t *testing.T, s *script, e *Client)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := &script{t: t, begun: time.Now(), ends: make(chan struct{})}
		l := bufconn.Listen(1 << 20)
		server := grpc.NewServer()
		rlqsv3.RegisterRateLimitQuotaServiceServer(server, s)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(l) })
		defer serving.Wait()
		defer server.Stop()
		conn, err := grpc.NewClient("passthrough:///server",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return l.DialContext(ctx)
			}))
		suite.Must(t, err)
		defer conn.Close()
		e := Dial(Config{Domain: "api"}, conn)
		defer e.Close()
		f(t, s, e)
	})
}

// rest lets some time pass, and then waits for everything that is due.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// requests makes requests of a bucket id, and returns how many are allowed.
func (c *Client) requests(n int, id map[string]string) (allowed int) {
	for range n {
		if c.Request(id) {
			allowed++
		}
	}
	synctest.Wait()
	return allowed
}

// The first report goes out with the first request, then one every 5 s on the same stream, and what
// the server assigns is in force at once.
func TestClientReports(t *testing.T) {
	scripted(t, func(t *testing.T, s *script, e *Client) {
		rest(time.Minute)
		s.wantHeard() // no request, no stream
		e.requests(1, one)
		s.wantHeard("1m0s stream 1 api 1:0+0-1")
		s.say(assigns(one, bucketOf(5, 1, second), 60*second))
		if rate, most, assigned := e.Has(one); rate != 1 || most != 5 || !assigned {
			t.Errorf("it has %v, %v, %v", rate, most, assigned)
		}
		if got := e.requests(9, one); got != 5 {
			t.Errorf("%d are allowed", got)
		}
		rest(2 * second)
		e.requests(1, two)
		s.wantHeard("1m2s stream 1 api 2:0+0-1")
		rest(3 * second)
		s.wantHeard("1m5s stream 1 api 1:5+5-4 2:3+0-0")
		rest(10 * second)
		s.wantHeard("1m10s stream 1 api 1:5+0-0 2:5+0-0", "1m15s stream 1 api 1:5+0-0 2:5+0-0")
		if e.Rebuilt() != 1 || len(e.Faults()) > 0 {
			t.Errorf("%d buckets were built; %q", e.Rebuilt(), e.Faults())
		}
		s.say(assigns(one, perTimeUnit, second))
		if len(e.Faults()) != 1 {
			t.Errorf("the faults are %q", e.Faults())
		}
	})
}

// A stream that ends, for whatever reason, is opened again by the timer alone; what is reported in
// between is lost. Assignments go on until they end.
func TestClientReopens(t *testing.T) {
	for name, ends := range map[string]func(s *script, e *Client){
		"cut": func(_ *script, e *Client) { e.Cut() },
		"ended by the server": func(s *script, _ *Client) {
			s.change(func() {
				close(s.ends)
				s.ends = make(chan struct{})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(t *testing.T, s *script, e *Client) {
				e.requests(1, one)
				s.say(assigns(one, bucketOf(5, 1, second), 7*second))
				rest(second)
				s.wantHeard("0s stream 1 api 1:0+0-1")
				ends(s, e)
				synctest.Wait()
				if got := e.requests(6, one); got != 5 {
					t.Errorf("without a stream %d are allowed", got)
				}
				e.requests(2, two) // its first report is lost, and with it a denial
				rest(4 * second)
				s.wantHeard("5s stream 2 api 1:5+5-1 2:4+0-1")
				if got := e.requests(6, one); got != 4 {
					t.Errorf("after 4 s %d are allowed", got)
				}
				rest(2 * second)
				if got := e.requests(6, one); got != 0 {
					t.Errorf("after its end %d are allowed", got)
				}
				s.say(assigns(one, bucketOf(5, 1, second), 7*second))
				if got := e.requests(6, one); got != 5 || e.Rebuilt() != 2 {
					t.Errorf("told again %d are allowed, and %d buckets were built", got, e.Rebuilt())
				}
			})
		})
	}
}

// While a server refuses streams, each timer tries once, and its report is lost.
func TestClientIsRefused(t *testing.T) {
	scripted(t, func(t *testing.T, s *script, e *Client) {
		s.change(func() { s.refuses = true })
		e.requests(3, one)
		rest(12 * second)
		s.wantHeard()
		s.change(func() { s.refuses = false })
		e.requests(1, one)
		rest(3 * second)
		s.wantHeard("15s stream 4 api 1:5+0-1")
	})
}

// A server that does not read makes nobody wait.
func TestClientOfADeafServer(t *testing.T) {
	scripted(t, func(t *testing.T, s *script, e *Client) {
		s.change(func() { s.deaf = true })
		for i := range 2000 {
			if e.Request(map[string]string{"account": fmt.Sprint(i)}) {
				t.Fatal("a request is allowed")
			}
		}
		rest(time.Minute)
		if time.Since(s.begun) != time.Minute {
			t.Errorf("2000 requests took until %v", time.Since(s.begun)-time.Minute)
		}
	})
}

// A paused Envoy takes no request, makes no report and reads nothing. When it goes on, it takes
// what was sent to it as if it came now, and reports.
func TestClientPauses(t *testing.T) {
	scripted(t, func(t *testing.T, s *script, e *Client) {
		e.requests(1, one)
		s.say(assigns(one, bucketOf(5, 1, second), 4*second))
		s.wantHeard("0s stream 1 api 1:0+0-1")
		e.Pause()
		s.say(assigns(one, bucketOf(5, 1, second), 4*second))
		if got := e.requests(9, one); got != 0 {
			t.Errorf("paused it allows %d", got)
		}
		rest(20 * second)
		s.wantHeard()
		if _, _, assigned := e.Has(one); assigned {
			t.Error("what it was told before it paused is in force for longer than its time to live")
		}
		e.Resume()
		synctest.Wait()
		s.wantHeard("20s stream 1 api 1:20+0-0")
		// It was late, so that it is a new bucket.
		if got := e.requests(9, one); got != 5 || e.Rebuilt() != 2 {
			t.Errorf("told while paused %d are allowed, and %d buckets were built", got, e.Rebuilt())
		}
		rest(3 * second)
		if _, _, assigned := e.Has(one); !assigned {
			t.Error("its time to live began before it was taken")
		}
		rest(2 * second)
		s.wantHeard("25s stream 1 api 1:5+5-4")
		e.Pause() // and it can be closed
	})
}

// A paused Envoy whose stream is cut has the stream opened by its first report.
func TestClientIsCutWhilePaused(t *testing.T) {
	scripted(t, func(t *testing.T, s *script, e *Client) {
		e.requests(1, one)
		e.Pause()
		rest(second)
		e.Cut()
		rest(7 * second)
		s.wantHeard("0s stream 1 api 1:0+0-1")
		e.Resume()
		synctest.Wait()
		s.wantHeard("8s stream 2 api 1:8+0-0")
	})
}

// A closed Envoy decides without a server.
func TestClientIsClosed(t *testing.T) {
	scripted(t, func(t *testing.T, s *script, e *Client) {
		e.Close()
		e.Pause()
		if got := e.requests(3, one); got != 0 {
			t.Errorf("it allows %d", got)
		}
		rest(time.Minute)
		s.wantHeard()
	})
}
