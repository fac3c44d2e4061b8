package envoy

import (
	"context"
	"sync"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
)

// Client is an Envoy on a gRPC connection. Safe for concurrent use.
type Client struct {
	rpc   rlqsv3.RateLimitQuotaServiceClient
	begun time.Time
	wake  chan struct{} // the timer has begun
	done  chan struct{}
	stop  context.CancelFunc
	ends  context.Context

	mu     sync.Mutex
	envoy  *Envoy
	stream rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasClient // nil: it is down
	cancel context.CancelFunc                                       // of stream
	paused bool
	held   []*rlqsv3.RateLimitQuotaResponse // came while it was paused
}

// Dial returns an Envoy that opens its stream on a connection with its first request.
func Dial(c Config, conn grpc.ClientConnInterface) *Client {
	e := &Client{rpc: rlqsv3.NewRateLimitQuotaServiceClient(conn), begun: time.Now(),
		envoy: New(c), wake: make(chan struct{}, 1), done: make(chan struct{})}
	e.ends, e.stop = context.WithCancel(context.Background())
	go e.run()
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
		if c.stream == nil {
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
	defer close(c.done)
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
	if c.paused {
		c.envoy.next = c.now() + ReportEvery/50
		return
	}
	report := c.envoy.Tick(c.now())
	if c.stream == nil {
		c.open()
	}
	c.send(report)
}

// open opens the stream. The caller holds the lock.
func (c *Client) open() {
	ctx, cancel := context.WithCancel(c.ends)
	stream, err := c.rpc.StreamRateLimitQuotas(ctx)
	if err != nil {
		cancel()
		return
	}
	c.stream, c.cancel = stream, cancel
	go c.receive(stream)
}

// send sends a report, if the stream is up. The caller holds the lock.
func (c *Client) send(m *rlqsv3.RateLimitQuotaUsageReports) {
	if c.stream != nil && !c.paused && c.stream.Send(m) != nil {
		c.down(c.stream)
	}
}

// receive takes in what comes on a stream until it is over.
func (c *Client) receive(stream rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasClient) {
	for {
		m, err := stream.Recv()
		c.mu.Lock()
		switch {
		case err != nil:
			c.down(stream)
			c.mu.Unlock()
			return
		case c.paused:
			c.held = append(c.held, m)
		default:
			c.envoy.Received(c.now(), m)
		}
		c.mu.Unlock()
	}
}

// down notes that a stream is over. The caller holds the lock.
func (c *Client) down(stream rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasClient) {
	if c.stream == stream {
		c.cancel()
		c.stream = nil
	}
}

// Cut ends the stream. The Envoy opens another with its next report.
func (c *Client) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil {
		c.down(c.stream)
	}
}

// Pause stops the process: it takes no request and makes no report, and messages wait.
func (c *Client) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
}

// Resume ends a Pause.
func (c *Client) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = false
	for _, m := range c.held {
		c.envoy.Received(c.now(), m)
	}
	c.held = nil
}

// Has says whether a bucket id has an assignment, and its tokens a second and at most.
func (c *Client) Has(id map[string]string) (rate, most float64, assigned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.envoy.Has(c.now(), id)
}

// Faults returns what the server did wrong.
func (c *Client) Faults() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.envoy.Faults
}

// Close ends the Envoy.
func (c *Client) Close() {
	c.stop()
	<-c.done
}
