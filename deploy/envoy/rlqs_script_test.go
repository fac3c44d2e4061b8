//go:build envoy

package envoy

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/chaos/lab/suite"
	model "github.com/quotad/quotad/chaos/play/envoy"
)

// heard is one report of one message.
type heard struct {
	account         string
	allowed, denied uint64
	at              time.Time
	message, stream int // its number
	of              int // reports in it
}

// script is a server of RLQS that says what a test says, and writes down what it hears.
type script struct {
	rlqsv3.UnimplementedRateLimitQuotaServiceServer
	mu       sync.Mutex
	reports  []heard
	messages int
	streams  int
	open     rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasServer
	ends     chan struct{} // closed: the open stream ends
}

// startScript serves it, and returns where.
func startScript(t *testing.T) (*script, string) {
	t.Helper()
	s := &script{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	server := grpc.NewServer()
	rlqsv3.RegisterRateLimitQuotaServiceServer(server, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return s, l.Addr().String()
}

// StreamRateLimitQuotas implements the service.
func (s *script) StreamRateLimitQuotas(stream rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	ends := make(chan struct{})
	s.mu.Lock()
	s.streams++
	s.open, s.ends = stream, ends
	number := s.streams
	s.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			s.hear(m, number)
		}
	}()
	select {
	case <-over:
	case <-ends:
	}
	return nil
}

func (s *script) hear(m *rlqsv3.RateLimitQuotaUsageReports, stream int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages++
	for _, u := range m.GetBucketQuotaUsages() {
		s.reports = append(s.reports, heard{account: u.GetBucketId().GetBucket()["account"],
			allowed: u.GetNumRequestsAllowed(), denied: u.GetNumRequestsDenied(), at: time.Now(),
			message: s.messages, stream: stream, of: len(m.GetBucketQuotaUsages())})
	}
}

// of returns the reports of an account.
func (s *script) of(account string) (all []heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.reports {
		if r.account == account {
			all = append(all, r)
		}
	}
	return all
}

// sum returns what was reported of an account in all.
func (s *script) sum(account string) (allowed, denied uint64) {
	for _, r := range s.of(account) {
		allowed, denied = allowed+r.allowed, denied+r.denied
	}
	return allowed, denied
}

// say sends actions in one message.
func (s *script) say(t *testing.T, all ...*rlqsv3.RateLimitQuotaResponse_BucketAction) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	suite.Must(t, s.open.Send(&rlqsv3.RateLimitQuotaResponse{BucketAction: all}))
}

// cut ends the stream.
func (s *script) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ends)
}

// assigns is an action that assigns a strategy.
func assigns(account string, s *types.RateLimitStrategy, ttl time.Duration) *rlqsv3.RateLimitQuotaResponse_BucketAction {
	a := &rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{RateLimitStrategy: s}
	if ttl > 0 {
		a.AssignmentTimeToLive = durationpb.New(ttl)
	}
	return &rlqsv3.RateLimitQuotaResponse_BucketAction{BucketId: idOf(account),
		BucketAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{QuotaAssignmentAction: a}}
}

// abandons is an action that has a bucket id forgotten.
func abandons(account string) *rlqsv3.RateLimitQuotaResponse_BucketAction {
	return &rlqsv3.RateLimitQuotaResponse_BucketAction{BucketId: idOf(account),
		BucketAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction_{
			AbandonAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction{}}}
}

func idOf(account string) *rlqsv3.BucketId {
	return &rlqsv3.BucketId{Bucket: map[string]string{"account": account}}
}

// bucketOf is a token bucket of one token an interval.
func bucketOf(most uint32, interval time.Duration) *types.RateLimitStrategy {
	return &types.RateLimitStrategy{Strategy: &types.RateLimitStrategy_TokenBucket{TokenBucket: &types.TokenBucket{
		MaxTokens: most, TokensPerFill: wrapperspb.UInt32(1), FillInterval: durationpb.New(interval)}}}
}

func blanket(r types.RateLimitStrategy_BlanketRule) *types.RateLimitStrategy {
	return &types.RateLimitStrategy{Strategy: &types.RateLimitStrategy_BlanketRule_{BlanketRule: r}}
}

var (
	allowAll    = blanket(types.RateLimitStrategy_ALLOW_ALL)
	denyAll     = blanket(types.RateLimitStrategy_DENY_ALL)
	perTimeUnit = &types.RateLimitStrategy{Strategy: &types.RateLimitStrategy_RequestsPerTimeUnit_{
		RequestsPerTimeUnit: &types.RateLimitStrategy_RequestsPerTimeUnit{RequestsPerTimeUnit: 100,
			TimeUnit: types.RateLimitUnit_SECOND}}}
)

// subject is an Envoy, the real one or the model.
type subject struct {
	*script
	once func(account string) bool
	seen map[string][2]uint64 // what its clients saw of each account: allowed and denied
}

// ask makes requests, and returns how many are allowed.
func (s *subject) ask(account string, n int) (allowed int) {
	for range n {
		seen := s.seen[account]
		if s.once(account) {
			allowed++
			seen[0]++
		} else {
			seen[1]++
		}
		s.seen[account] = seen
	}
	return allowed
}

// tell says actions, and waits until they are in force. It uses the account "mark" for that.
func (s *subject) tell(t *testing.T, all ...*rlqsv3.RateLimitQuotaResponse_BucketAction) {
	t.Helper()
	if len(s.of("mark")) == 0 {
		s.ask("mark", 1)
		suite.Eventually(t, "the mark is reported", func() bool { return len(s.of("mark")) > 0 })
	}
	s.say(t, append(all, assigns("mark", allowAll, time.Hour))...)
	suite.Eventually(t, "the mark is allowed", func() bool { return s.ask("mark", 1) == 1 })
	s.say(t, assigns("mark", denyAll, time.Hour))
	suite.Eventually(t, "the mark is denied", func() bool { return s.ask("mark", 1) == 0 })
}

// subjects starts both.
func subjects(t *testing.T) map[string]*subject {
	t.Helper()
	all := map[string]*subject{}
	s, at := startScript(t)
	p := startEnvoy(t, "rlqs.yaml", startApp(t), []string{at}, edit{expired(t), "\n"},
		edit{"reporting_interval: 5s", "reporting_interval: 1s"}) // which changes nothing
	c := p.client(t, "127.0.0.2")
	all["Envoy"] = &subject{s, func(account string) bool {
		return c.get(t, "GET", "/", "X-Account", account).code == http.StatusOK
	}, map[string][2]uint64{}}
	s, at = startScript(t)
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	suite.Must(t, err)
	m := model.Dial(model.Config{Domain: "web", NoAssignment: denyAll, Carries: true}, conn)
	t.Cleanup(func() {
		m.Close()
		_ = conn.Close()
	})
	all["model"] = &subject{s, func(account string) bool {
		return m.Request(map[string]string{"account": account})
	}, map[string][2]uint64{}}
	return all
}
