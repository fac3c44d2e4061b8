package region_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/envoy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/envoys"
)

const assignable = "name: assigned, algorithm: token_bucket, limit: 1200, window: 1s, burst: 1200, assign: {}"

// proxy is an Envoy on a node's stream, which callers ask evenly.
type proxy struct {
	envoy   *envoy.Envoy
	begun   time.Time
	demand  float64 // requests a second
	judge   judge
	mu      sync.Mutex
	offered int
	allowed int
}

var bucketID = map[string]string{"account": "42"}

// judge hears of each request that an Envoy admits.
type judge interface{ admit() }

// counted is one fixed window of a minute of a whole limit.
type counted struct {
	mu    sync.Mutex
	units map[int64]int // by the number of the window
}

func (c *counted) admit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.units[time.Now().Unix()/60]++
}

// pooled is one bucket of a whole limit: it reports whether it would have admitted what was.
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
func (p *proxy) run(t *testing.T, n *region.Node, latency time.Duration, stop <-chan struct{}) {
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
			Allowed: u.GetNumRequestsAllowed(), Denied: u.GetNumRequestsDenied(),
			Elapsed: u.GetTimeElapsed().GetSeconds()})
	}
	return all
}

// skewed are Envoys of three regions that together want 0.9 of a limit of 1,200 a second, most of
// it in one region. It returns them after seconds that do not count, and what they were offered and
// admitted in the seconds after that.
func skewed(t *testing.T, c *cluster, j judge, before, counts time.Duration) (offered, allowed int) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	var all []*proxy
	for i := range 12 {
		n := c.running[[]string{"us/n1", "eu/n1", "ap/n1"}[i%3]]
		p := &proxy{envoy: envoy.New(envoy.Config{Domain: "api"}), begun: time.Now(), judge: j,
			demand: []float64{200, 40, 30}[i%3]}
		all = append(all, p)
		running.Go(func() { p.run(t, n.Node, 5*time.Millisecond, stop) })
	}
	time.Sleep(before)
	for _, p := range all {
		p.takes(t)
	}
	time.Sleep(counts)
	for _, p := range all {
		o, a := p.takes(t)
		offered, allowed = offered+o, allowed+a
	}
	close(stop)
	running.Wait()
	for _, p := range all {
		for _, fault := range p.envoy.Faults {
			t.Error(fault)
		}
	}
	return offered, allowed
}

// Envoys of three regions get the limit where their demand is, and never more than it.
func TestEnvoysAreAssignedTheLimit(t *testing.T) {
	suite.LongWithRace(t)
	d := documents.Parse(t, 1, thirds, assignable)
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		judge := newPooled(1200, 1200)
		// Rights follow the demand within two reports, a round trip and a tick or two.
		offered, allowed := skewed(t, c, judge, 15*time.Second, 45*time.Second)
		t.Logf("%d of %d admitted", allowed, offered)
		if allowed*100 < offered*95 {
			t.Errorf("%d of %d requests were admitted, of a demand of 0.9 of the limit", allowed, offered)
		}
		if judge.least < 0 {
			t.Errorf("%.0f admitted above the limit", -judge.least)
		}
	})
}

// The same of a fixed window of a minute.
func TestEnvoysAreAssignedAWindow(t *testing.T) {
	suite.LongWithRace(t)
	d := documents.Parse(t, 1, thirds,
		"name: assigned, algorithm: fixed_window, limit: 72000, window: 1m, assign: {}")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		judge := &counted{units: map[int64]int{}}
		offered, allowed := skewed(t, c, judge, 60*time.Second, 150*time.Second)
		t.Logf("%d of %d admitted", allowed, offered)
		if allowed*100 < offered*95 {
			t.Errorf("%d of %d requests were admitted, of a demand of 0.9 of the limit", allowed, offered)
		}
		for window, units := range judge.units {
			if units > 72000 {
				t.Errorf("%d admitted in window %d", units, window)
			}
		}
	})
}
