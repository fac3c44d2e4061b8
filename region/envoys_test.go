package region

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/chaos/envoy"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/envoys"
)

const assignable = "name: assigned, algorithm: token_bucket, limit: 1200, window: 1s, burst: 1200, assign: {}"

// proxy is an Envoy on a node's stream, which callers ask evenly.
type proxy struct {
	envoy   *envoy.Envoy
	begun   time.Time
	demand  float64 // requests a second
	judge   *pooled
	mu      sync.Mutex
	offered int
	allowed int
}

var bucketID = map[string]string{"account": "42"}

// pooled is one bucket of a whole limit: it says whether it would have admitted what was.
type pooled struct {
	mu          sync.Mutex
	rate, burst float64
	level       float64
	at          time.Time
	least       float64
}

func newPooled(rate, burst float64) *pooled {
	return &pooled{rate: rate, burst: burst, level: burst, at: time.Now(), least: burst}
}

func (p *pooled) admit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.level = min(p.level+p.rate*now.Sub(p.at).Seconds(), p.burst) - 1
	p.at = now
	p.least = min(p.least, p.level)
}

// run has the proxy serve on a node's stream until stop is closed. latency is each way's.
func (p *proxy) run(t *testing.T, n *Node, latency time.Duration, stop <-chan struct{}) {
	s, err := n.Envoys().Open("api")
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for {
			all, err := s.Next(t.Context())
			if err != nil {
				return
			}
			time.Sleep(latency)
			p.mu.Lock()
			p.envoy.Received(time.Since(p.begun)+1, messageOf(all))
			p.mu.Unlock()
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	report := func(m *rlqsv3.RateLimitQuotaUsageReports) {
		time.Sleep(latency)
		s.Report(usagesIn(m))
	}
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	carry := rand.Float64()
	for {
		select {
		case <-stop:
			return
		case <-every.C:
		}
		p.mu.Lock()
		now := time.Since(p.begun) + 1
		for carry += p.demand / 100; carry >= 1; carry-- {
			allowed, first := p.envoy.Request(now, bucketID)
			if p.offered++; allowed {
				p.allowed++
				p.judge.admit()
			}
			if first != nil {
				go report(first)
			}
		}
		if due := p.envoy.Due(); due > 0 && due <= now {
			go report(p.envoy.Tick(now))
		}
		p.mu.Unlock()
	}
}

// takes returns how many requests there were since the last call, and how many were admitted.
func (p *proxy) takes(t *testing.T) (offered, allowed int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	offered, allowed, p.offered, p.allowed = p.offered, p.allowed, 0, 0
	return offered, allowed
}

// messageOf returns the message of assignments as the gRPC service makes it.
func messageOf(all []envoys.Assignment) *rlqsv3.RateLimitQuotaResponse {
	m := &rlqsv3.RateLimitQuotaResponse{}
	for _, a := range all {
		m.BucketAction = append(m.BucketAction, &rlqsv3.RateLimitQuotaResponse_BucketAction{
			BucketId: &rlqsv3.BucketId{Bucket: a.ID},
			BucketAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
				QuotaAssignmentAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
					AssignmentTimeToLive: &durationpb.Duration{Seconds: a.TTL},
					RateLimitStrategy: &typev3.RateLimitStrategy{
						Strategy: &typev3.RateLimitStrategy_TokenBucket{
							TokenBucket: &typev3.TokenBucket{MaxTokens: uint32(a.Burst),
								TokensPerFill: wrapperspb.UInt32(uint32(a.Rate)),
								FillInterval:  &durationpb.Duration{Seconds: 1}}}}}}})
	}
	return m
}

func usagesIn(m *rlqsv3.RateLimitQuotaUsageReports) (all []envoys.Usage) {
	for _, u := range m.GetBucketQuotaUsages() {
		all = append(all, envoys.Usage{ID: u.GetBucketId().GetBucket(),
			Allowed: u.GetNumRequestsAllowed(), Denied: u.GetNumRequestsDenied()})
	}
	return all
}

// Envoys of three regions get the limit where their demand is, and never more than it.
func TestEnvoysAreAssignedTheLimit(t *testing.T) {
	d := documents.Parse(t, 1, thirds, assignable)
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		judge := newPooled(1200, 1200)
		stop := make(chan struct{})
		var running sync.WaitGroup
		var all []*proxy
		for i := range 12 {
			n := c.running[[]string{"us/n1", "eu/n1", "ap/n1"}[i%3]]
			p := &proxy{envoy: envoy.New(envoy.Config{Domain: "api"}), begun: time.Now(),
				judge: judge, demand: []float64{200, 40, 30}[i%3]}
			all = append(all, p)
			running.Go(func() { p.run(t, n.Node, 5*time.Millisecond, stop) })
		}
		// Rights follow the demand within two reports, a round trip and a tick or two.
		time.Sleep(15 * time.Second)
		for _, p := range all {
			p.takes(t)
		}
		time.Sleep(45 * time.Second)
		offered, allowed := 0, 0
		for _, p := range all {
			o, a := p.takes(t)
			offered, allowed = offered+o, allowed+a
		}
		if allowed*100 < offered*95 {
			t.Errorf("%d of %d requests were admitted, of a demand of 0.9 of the limit", allowed, offered)
		}
		close(stop)
		running.Wait()
		for _, p := range all {
			for _, fault := range p.envoy.Faults {
				t.Error(fault)
			}
		}
		if judge.least < 0 {
			t.Errorf("%.0f admitted above the limit", -judge.least)
		}
	})
}
