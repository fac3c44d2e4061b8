package callers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/envoy"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/front/wire"
)

// assignable is a limit that Envoys are assigned parts of, and one that they are not.
const assignable = "  - {name: assigned, domain: api, key: [account], algorithm: token_bucket, limit: 100000, window: 1s, burst: 100000, assign: {}}\n" +
	"  - {name: asked, domain: api, key: [user], algorithm: token_bucket, limit: 1000, window: 1s, burst: 1000}\n"

// proxy is an Envoy's stream, with a fake Envoy that judges what comes.
type proxy struct {
	*testing.T
	stream rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasClient
	envoy  *envoy.Envoy
	begun  time.Time
	end    context.CancelFunc
}

// envoyOn opens a stream that ends with the test.
func envoyOn(t *testing.T, ctx context.Context, conn grpc.ClientConnInterface) *proxy {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, suite.Patience)
	t.Cleanup(cancel)
	stream, err := rlqsv3.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(ctx)
	suite.Must(t, err)
	return &proxy{t, stream, envoy.New(envoy.Config{}), time.Now(), cancel}
}

func (p *proxy) now() time.Duration { return time.Since(p.begun) + 1 }

// report sends a report of bucket ids in one message, as after a request of each.
func (p *proxy) report(domain string, ids ...map[string]string) {
	p.Helper()
	m := &rlqsv3.RateLimitQuotaUsageReports{Domain: domain}
	for _, id := range ids {
		p.envoy.Request(p.now(), id)
		m.BucketQuotaUsages = append(m.BucketQuotaUsages,
			&rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage{
				BucketId: &rlqsv3.BucketId{Bucket: id}, NumRequestsDenied: 1})
	}
	if err := p.stream.Send(m); err != nil {
		p.Error(err)
	}
}

// receive waits until there were answers about bucket ids, and returns the last of each. A node may
// tell of others meanwhile, whose assignments it renews.
func (p *proxy) receive(ids ...map[string]string) map[string]*rlqsv3.RateLimitQuotaResponse_BucketAction {
	p.Helper()
	said := map[string]*rlqsv3.RateLimitQuotaResponse_BucketAction{}
	open := func(id map[string]string) bool { return said[fmt.Sprint(id)] == nil }
	for slices.ContainsFunc(ids, open) {
		m, err := p.stream.Recv()
		if err != nil {
			p.Fatalf("not all of %v were answered: %v", ids, err)
		}
		p.envoy.Received(p.now(), m)
		for _, a := range m.GetBucketAction() {
			said[fmt.Sprint(a.GetBucketId().GetBucket())] = a
		}
	}
	for _, fault := range p.envoy.Faults {
		p.Error(fault)
	}
	return said
}

// wantAssigned wants a bucket id to be answered with an assignment.
func (p *proxy) wantAssigned(id map[string]string) {
	p.Helper()
	if a := p.receive(id)[fmt.Sprint(id)]; a.GetQuotaAssignmentAction() == nil {
		p.Errorf("%v is answered with %v", id, a)
		return
	}
	if allowed, _ := p.envoy.Request(p.now(), id); !allowed {
		p.Errorf("%v has an assignment that allows nothing", id)
	}
}

// wantAbandoned wants bucket ids to be answered with their abandonment.
func (p *proxy) wantAbandoned(ids ...map[string]string) {
	p.Helper()
	said := p.receive(ids...)
	for _, id := range ids {
		if a := said[fmt.Sprint(id)]; a.GetAbandonAction() == nil {
			p.Errorf("%.100v is answered with %.100v", id, a)
		}
	}
}

// wantEnd wants the stream to end with a code. Nothing but assignments may come before.
func (p *proxy) wantEnd(code codes.Code, says string) {
	p.Helper()
	for {
		_, err := p.stream.Recv()
		if err == nil {
			continue
		}
		if code == codes.OK && err.Error() == "EOF" {
			return
		}
		if status.Code(err) != code || !strings.Contains(err.Error(), says) {
			p.Errorf("the stream ends with %v, want %v that says %q", err, code, says)
		}
		return
	}
}

func account(name string) map[string]string { return map[string]string{"account": name} }

// TestRLQS has Envoys report to a real node, on an embedded Redis and on a redis-server.
func TestRLQS(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, fronts.Start(t, start(t), assignable), fronts.Quiet())
			conn := dialed(t, s)
			open := func() *proxy { return envoyOn(t, t.Context(), conn) }

			wantFirstDomain(open)
			wantInvalidAbandoned(open())
			wantNoText(t, conn)
			wantMaxBuckets(open())
			closes := open()
			closes.report("api", account("7"))
			closes.wantAssigned(account("7"))
			if err := closes.stream.CloseSend(); err != nil {
				t.Error(err)
			}
			closes.wantEnd(codes.OK, "")
			wrong := open()
			wrong.report("api")
			if err := wrong.stream.Send(&rlqsv3.RateLimitQuotaUsageReports{
				BucketQuotaUsages: make([]*rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage,
					maxRecords+1)}); err != nil {
				t.Error(err)
			}
			wrong.wantEnd(codes.InvalidArgument, "fields and entries")
			wantDrained(s, open())
		})
	}
}

// wantFirstDomain wants the domain of a stream's first message to count, and none of a later one's.
func wantFirstDomain(open func() *proxy) {
	p, other := open(), open()
	p.Helper()
	p.report("api", account("42"))
	p.wantAssigned(account("42"))
	p.report("other", account("43"))
	p.wantAssigned(account("43"))
	p.report("", map[string]string{"other": "1"}, map[string]string{"user": "1"})
	p.wantAbandoned(map[string]string{"other": "1"}, map[string]string{"user": "1"})
	other.report("other", account("42"))
	other.wantAbandoned(account("42"))
	other.report("api", account("42"))
	other.wantAbandoned(account("42"))
	p.end()
	other.end()
}

// wantInvalidAbandoned wants ids that no request can have to be abandoned, or to have no answer if
// an answer could not name them; and what is reported with them to be assigned.
func wantInvalidAbandoned(p *proxy) {
	p.Helper()
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint(i)] = ""
	}
	invalid := []map[string]string{{strings.Repeat("n", 129): "1"}, {"account": strings.Repeat("v", 257)},
		{"": "1"}, many}
	p.report("api", append(invalid, nil, map[string]string{})...)
	p.wantAbandoned(invalid...)
	if err := p.stream.SendMsg(&rlqsv3.RateLimitQuotaUsageReports{
		BucketQuotaUsages: []*rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage{nil, {}}}); err != nil {
		p.Error(err)
	}
	p.report("api", account("a\x00b\u202e"))
	p.wantAssigned(account("a\x00b\u202e"))
	p.end()
}

// wantNoText wants a bucket id that is no text to harm no other one.
func wantNoText(t *testing.T, conn grpc.ClientConnInterface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		rlqsv3.RateLimitQuotaService_StreamRateLimitQuotas_FullMethodName,
		grpc.ForceCodecV2(wordsOut{}))
	suite.Must(t, err)
	m := text(1, "api")
	for _, value := range []string{"\xff", "44", "\xed\xa0\x80"} { // the last is half a surrogate pair
		m = append(m, text(2, string(text(1, string(text(1, string(append(text(1, "account"),
			text(2, value)...)))))))...)
	}
	suite.Must(t, stream.SendMsg(m))
	got := &rlqsv3.RateLimitQuotaResponse{}
	if err := stream.RecvMsg(got); err != nil || len(got.GetBucketAction()) != 1 ||
		got.GetBucketAction()[0].GetBucketId().GetBucket()["account"] != "44" ||
		got.GetBucketAction()[0].GetQuotaAssignmentAction() == nil {
		t.Errorf("a report of which two bucket ids are no text is answered with %v, %v", got, err)
	}
}

// wordsOut sends bytes as they are, and receives messages.
type wordsOut struct{ fronts.RawCodec }

func (wordsOut) Unmarshal(data mem.BufferSlice, v any) error {
	return proto.Unmarshal(data.Materialize(), v.(proto.Message))
}

// wantMaxBuckets wants the bucket ids of a stream above the bound to be abandoned.
func wantMaxBuckets(p *proxy) {
	p.Helper()
	const more = 5
	var all []map[string]string
	for i := range envoys.MaxBuckets + more {
		all = append(all, account(fmt.Sprint("many", i)))
	}
	p.report("api", all[:envoys.MaxBuckets/2]...)
	p.report("api", all[envoys.MaxBuckets/2:]...)
	said := p.receive(all[envoys.MaxBuckets:]...)
	for i, id := range all {
		if abandoned := said[fmt.Sprint(id)].GetAbandonAction() != nil; abandoned != (i >= envoys.MaxBuckets) {
			p.Errorf("%v is abandoned: %v", id, abandoned)
		}
	}
	p.end()
}

// wantDrained wants a stream to hear of no assignment that lasts for longer than it takes to go to
// another node, and then that the node ends.
func wantDrained(s *Server, p *proxy) {
	p.Helper()
	p.report("api", account("last"))
	p.wantAssigned(account("last"))
	shut := make(chan error, 1)
	go func() { shut <- s.Shutdown(p.Context()) }()
	for {
		m, err := p.stream.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable ||
				!strings.Contains(err.Error(), "connect to another node") {
				p.Errorf("the stream ends with %v", err)
			}
			break
		}
		for _, a := range m.GetBucketAction() {
			ttl := a.GetQuotaAssignmentAction().GetAssignmentTimeToLive()
			if ttl.AsDuration() > 6*time.Second {
				p.Errorf("a node that ends assigns %v", a)
			}
		}
	}
	if err := <-shut; err != nil {
		p.Error(err)
	}
}

// TestRLQSDomains: a stream is held to the domains of its caller, who needs the role check.
func TestRLQSDomains(t *testing.T) {
	callers := fronts.NewRoles(t)
	node := &fronts.Node{}
	s := startServer(node, fronts.Quiet(), Options{Port: wire.Port{Guard: callers.Guard("api")}})
	conn := dialed(t, s)
	for _, c := range []struct {
		token, domain string
		code          codes.Code
	}{
		{callers.Tokens["tenant"], "web", codes.OK},
		{callers.Tokens["tenant"], "api", codes.PermissionDenied},
		{callers.Tokens["tenant"], "", codes.PermissionDenied},
		{callers.Tokens["check"], "api", codes.OK},
		{callers.Tokens["operate"], "api", codes.PermissionDenied},
		{"", "api", codes.Unauthenticated},
	} {
		ctx := t.Context()
		if c.token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
		}
		p := envoyOn(t, ctx, conn)
		_ = p.stream.Send(&rlqsv3.RateLimitQuotaUsageReports{Domain: c.domain})
		// A later message has no say.
		_ = p.stream.Send(&rlqsv3.RateLimitQuotaUsageReports{Domain: "api"})
		_ = p.stream.CloseSend()
		p.wantEnd(c.code, "")
	}
	if got := node.Envoys().Stats().Streams; got != 0 {
		t.Errorf("%d streams are left", got)
	}
}

// TestRLQSPanics: a panic ends the stream on which it happened, and nothing else.
func TestRLQSPanics(t *testing.T) {
	node := &fronts.Node{} // whose assigner has no rules to match bucket ids with
	conn := dialed(t, newServer(t, node, fronts.Quiet()))
	for first := range 2 {
		p := envoyOn(t, t.Context(), conn)
		for range first {
			p.report("api")
		}
		p.report("api", account("42"))
		p.wantEnd(codes.Internal, "a fault of quotad")
		node.Mu.Lock()
		if len(node.Panics) != first+1 || node.Panics[first] != "grpc/StreamRateLimitQuotas" {
			t.Errorf("the panics are %q", node.Panics)
		}
		node.Mu.Unlock()
	}
	p := envoyOn(t, t.Context(), conn)
	p.report("api", nil)
	if err := p.stream.CloseSend(); err != nil {
		t.Error(err)
	}
	p.wantEnd(codes.OK, "")
}

// TestRLQSRefused: streams beyond the bound of a node are refused, and all when it ends. A client
// that ends its stream without a word is no fault.
func TestRLQSRefused(t *testing.T) {
	node := &fronts.Node{}
	conn := dialed(t, newServer(t, node, fronts.Quiet()))
	var all []*envoys.Stream
	for range envoys.MaxStreams {
		one, err := node.Envoys().Open("api")
		suite.Must(t, err)
		all = append(all, one)
	}
	says := func(code codes.Code, says string) {
		t.Helper()
		p := envoyOn(t, t.Context(), conn)
		p.report("api")
		_ = p.stream.CloseSend()
		p.wantEnd(code, says)
	}
	if _, err := node.Envoys().Open("api"); !errors.Is(err, envoys.ErrTooMany) {
		t.Error(err)
	}
	says(codes.ResourceExhausted, "connect to another node")
	all[0].Close()
	says(codes.OK, "")
	node.Envoys().Drain()
	says(codes.Unavailable, "connect to another node")
	silent := envoyOn(t, t.Context(), conn)
	if err := silent.stream.CloseSend(); err != nil {
		t.Error(err)
	}
	silent.wantEnd(codes.OK, "")
}
