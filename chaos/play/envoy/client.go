package envoy

import (
	"context"
	"slices"
	"sync"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
)

// maxUnsent bounds the reports that wait for a server that does not read. Further ones are lost.
const maxUnsent = 64

// Client is an Envoy on a gRPC connection. Safe for concurrent use.
type Client struct {
	rpc   rlqsv3.RateLimitQuotaServiceClient
	begun time.Time
	wake  chan struct{} // the timer has begun
	work  sync.WaitGroup
	stop  context.CancelFunc
	ends  context.Context

	mu     sync.Mutex
	envoy  *Envoy
	opened bool    // the stream was opened once
	stream *stream // nil: it is down
	paused bool
	goesOn *sync.Cond // it is no longer paused, or ends
}

// stream is a stream of the Envoy's. Nothing that a server does, or leaves undone, makes requests
// wait.
type stream struct {
	unsent chan *rlqsv3.RateLimitQuotaUsageReports
	cancel context.CancelFunc
}

// Dial returns an Envoy that opens its stream on a connection with its first request.
func Dial(c Config, conn grpc.ClientConnInterface) *Client {
	e := &Client{rpc: rlqsv3.NewRateLimitQuotaServiceClient(conn), begun: time.Now(),
		envoy: New(c), wake: make(chan struct{}, 1)}
	e.goesOn = sync.NewCond(&e.mu)
	e.ends, e.stop = context.WithCancel(context.Background())
	e.work.Go(e.run)
	return e
}

// now returns the time of the Envoy's clock.
func (c *Client) now() time.Duration { return time.Since(c.begun) + 1 }

// Request decides a request of a bucket id. A paused Envoy takes none.
func (c *Client) Request(id map[string]string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return false
	}
	allowed, report := c.envoy.Request(c.now(), id)
	if report != nil {
		if !c.opened {
			c.open()
		}
		c.send(report)
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return allowed
}

// run fires the timer of reports until the Envoy ends.
func (c *Client) run() {
	for {
		var timer <-chan time.Time
		c.mu.Lock()
		if due := c.envoy.Due(); due > 0 {
			timer = time.After(due - c.now())
		}
		c.mu.Unlock()
		select {
		case <-c.ends.Done():
			return
		case <-c.wake:
		case <-timer:
			c.tick()
		}
	}
}

// tick reports. A paused Envoy reports when it goes on.
func (c *Client) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.paused {
		c.goesOn.Wait()
	}
	report := c.envoy.Tick(c.now())
	if c.stream == nil {
		c.open()
	}
	c.send(report)
}

// open opens the stream. The caller holds the lock.
func (c *Client) open() {
	if c.ends.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.ends)
	s := &stream{make(chan *rlqsv3.RateLimitQuotaUsageReports, maxUnsent), cancel}
	c.stream, c.opened = s, true
	c.work.Go(func() { c.serve(ctx, s) })
}

// serve sends reports on a stream until it is over.
func (c *Client) serve(ctx context.Context, s *stream) {
	defer c.down(s)
	rpc, err := c.rpc.StreamRateLimitQuotas(ctx)
	if err != nil {
		return
	}
	c.work.Go(func() {
		c.receive(rpc)
		c.down(s)
	})
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-s.unsent:
			if rpc.Send(m) != nil {
				return
			}
		}
	}
}

// send sends a report, if the stream is up. The caller holds the lock.
func (c *Client) send(m *rlqsv3.RateLimitQuotaUsageReports) {
	if c.stream == nil {
		return
	}
	select {
	case c.stream.unsent <- m:
	default:
	}
}

// receive takes in what comes on a stream until it is over. A paused Envoy does not read.
func (c *Client) receive(rpc rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasClient) {
	for {
		m, err := rpc.Recv()
		if err != nil {
			return
		}
		c.mu.Lock()
		for c.paused {
			c.goesOn.Wait()
		}
		c.envoy.Received(c.now(), m)
		c.mu.Unlock()
	}
}

// down notes that a stream is over.
func (c *Client) down(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.cancel()
	if c.stream == s {
		c.stream = nil
	}
}

// Cut ends the stream. The Envoy opens another with its next timer.
func (c *Client) Cut() {
	c.mu.Lock()
	s := c.stream
	c.mu.Unlock()
	if s != nil {
		c.down(s)
	}
}

// Pause stops the process: it takes no request, makes no report and reads nothing.
func (c *Client) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = c.ends.Err() == nil
}

// Resume ends a Pause.
func (c *Client) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = false
	c.goesOn.Broadcast()
}

// Has reports whether a bucket id has an assignment, and its tokens a second and at most.
func (c *Client) Has(id map[string]string) (rate, most float64, assigned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.envoy.Has(c.now(), id)
}

// Rebuilt returns how many token buckets began anew.
func (c *Client) Rebuilt() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.envoy.Rebuilt
}

// Faults returns what the server did wrong.
func (c *Client) Faults() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.envoy.Faults)
}

// Close ends the Envoy, and returns when nothing of it runs.
func (c *Client) Close() {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.Resume()
	c.work.Wait()
}
