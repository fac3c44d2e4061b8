package callers

import (
	"context"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
)

const (
	// maxMessageBytes bounds a message. A larger one is RESOURCE_EXHAUSTED before it is received.
	// It has room for maxInBatch requests of 1,000 bytes, or for some 150 of the largest.
	maxMessageBytes = 1 << 20
	// maxRecords bounds the fields and entries of a message: twice those of maxInBatch requests
	// with all that a request may have.
	maxRecords = 2 * maxInBatch * (1 + 5 + 3*admit.MaxDescriptors)
	// maxCalls bounds the calls of one connection that are served at a time. A client has further
	// calls wait until others are answered, which costs a node nothing, or opens another connection,
	// as Envoy does. RFC 9113 (6.5.2) advises against fewer.
	maxCalls = 100
	// workers is how many goroutines wait for gRPC calls. For each call of its own goroutine the
	// stack of that would grow to a decision's depth, which takes a fifth of a call.
	workers = 256
)

// connections says when connections are ended.
var connections = keepalive.ServerParameters{
	// Time without a call, the same as for HTTP.
	MaxConnectionIdle: 2 * time.Minute,
	// Connections are ended now and then, so that clients spread over nodes that came later. gRPC
	// adds 10 % jitter.
	MaxConnectionAge:      30 * time.Minute,
	MaxConnectionAgeGrace: time.Minute, // for calls under way
	// A client that is gone without closing the connection is noticed.
	Time:    time.Minute,
	Timeout: 20 * time.Second,
}

func (s *Server) newGRPCServer() *grpc.Server {
	calls := door.NewCalls(door.Bounds{Streams: maxCalls, Workers: workers, Message: maxMessageBytes,
		Records: maxRecords, Alive: connections,
		MinPing: 10 * time.Second}, s.panics, fieldStatus)
	calls.Admit(s.admit, shedding...)
	calls.Crowd(door.NewCrowd(busyStatus(overloaded, shedRetry).Err(),
		func() { s.work.Shed("grpc") }), quotadv1.QuotaService_Check_FullMethodName,
		quotadv1.QuotaService_Peek_FullMethodName, quotadv1.QuotaService_Report_FullMethodName, quotadv1.QuotaService_Take_FullMethodName,
		envoy.RateLimitService_ShouldRateLimit_FullMethodName)
	// Envoy sends what a client wrote in its headers, and lets pass what is answered with an error.
	calls.Mend(envoy.RateLimitService_ShouldRateLimit_FullMethodName)
	calls.Last(rlqsv3.RateLimitQuotaService_StreamRateLimitQuotas_FullMethodName)
	if guard := s.options.Guard; guard != nil {
		calls.Guard(guardRPC(guard))
	}
	options := calls.Options()
	if trust := s.options.TLS; trust != nil {
		options = append(options, grpc.Creds(
			door.NewHandshakes(s.log, "grpc").Credentials(credentials.NewTLS(trust("h2")))))
	}
	if t := s.options.Traces; t != nil {
		options = append(options, grpc.UnaryInterceptor(traceRPC(t)))
	}
	g := grpc.NewServer(options...)
	services := calls.Of(g)
	quotadv1.RegisterQuotaServiceServer(services, &service{Server: s})
	envoy.RegisterRateLimitServiceServer(services, s.rls)
	rlqsv3.RegisterRateLimitQuotaServiceServer(services, &rlqs{Server: s})
	healthv1.RegisterHealthServer(services, s.health)
	reflection.Register(services)
	return g
}

// service is quotad.v1.QuotaService.
type service struct {
	quotadv1.UnimplementedQuotaServiceServer
	*Server
}

// asked is the common part of CheckRequest and PeekRequest.
type asked interface {
	GetDomain() string
	GetDescriptors() map[string]string
	GetCost() int64
}

// request converts a message. cost is nil if the message has none, which means 1. A cost of 0 in
// the message stays 0, and is refused later.
func request(m asked, cost *int64) admit.Request {
	q := admit.Request{Domain: m.GetDomain(), Descriptors: m.GetDescriptors(), Cost: 1}
	if cost != nil {
		q.Cost = quantity.Units(*cost)
	}
	return q
}

// charge converts the message of a request that is to be charged.
func charge(m *quotadv1.CheckRequest) admit.Request {
	q := request(m, m.Cost)
	q.ID, q.Receipt, q.Question = m.GetRequestId(), m.GetReceipt(), m.GetQuestion()
	return q
}

// waiting makes a single check count as no work for the processors once it waits for the store.
func waiting(ctx context.Context) context.Context {
	return admit.OnHandover(ctx, func() { door.Waits(ctx) })
}

// Check implements quotad.v1.QuotaService.
func (s *service) Check(ctx context.Context, m *quotadv1.CheckRequest) (*quotadv1.CheckResponse,
	error) {
	q := charge(m)
	if err := s.options.MayName(ctx, q.Domain); err != nil {
		return nil, toStatus(err)
	}
	q.Caller = callerOf(ctx)
	d, err := s.node.Check(waiting(ctx), q)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return &quotadv1.CheckResponse{Decision: wire.DecisionMessage(d)}, nil
}

// Peek implements quotad.v1.QuotaService.
func (s *service) Peek(ctx context.Context, m *quotadv1.PeekRequest) (*quotadv1.PeekResponse,
	error) {
	q := request(m, m.Cost)
	if err := s.options.MayName(ctx, q.Domain); err != nil {
		return nil, toStatus(err)
	}
	q.Caller = callerOf(ctx)
	d, err := s.node.Peek(waiting(ctx), q)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return &quotadv1.PeekResponse{Decision: wire.DecisionMessage(d)}, nil
}

// Report implements quotad.v1.QuotaService.
func (s *service) Report(ctx context.Context, m *quotadv1.ReportRequest) (*quotadv1.ReportResponse, error) {
	q := admit.Request{Domain: m.GetDomain(), Descriptors: m.GetDescriptors(), Cost: quantity.Units(m.GetCost()),
		ID: m.GetRequestId(), Caller: callerOf(ctx)}
	if err := s.options.MayName(ctx, q.Domain); err != nil {
		return nil, toStatus(err)
	}
	d, err := s.reported(waiting(ctx), q)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return &quotadv1.ReportResponse{Decision: wire.DecisionMessage(d)}, nil
}

// Settle implements quotad.v1.QuotaService.
func (s *service) Settle(ctx context.Context, m *quotadv1.SettleRequest) (*quotadv1.SettleResponse, error) {
	if m.Used == nil {
		return nil, toStatus(usedMissing)
	}
	done, err := s.settled(ctx, settlement{m.GetReceipt(), quantity.Units(m.GetUsed())})
	if err != nil {
		return nil, toStatus(err)
	}
	return settledMessage(done), nil
}

// Take implements quotad.v1.QuotaService.
func (s *service) Take(ctx context.Context, m *quotadv1.TakeRequest) (*quotadv1.TakeResponse,
	error) {
	if err := s.options.MayName(ctx, m.GetDomain()); err != nil {
		return nil, toStatus(err)
	}
	taken, err := s.node.Take(waiting(ctx), admit.Take{Domain: m.GetDomain(),
		Descriptors: m.GetDescriptors(), Units: quantity.Units(m.GetUnits()),
		Admitted: quantity.Units(m.GetAdmitted()), Denied: quantity.Units(m.GetDenied()),
		Caller: callerOf(ctx)})
	if err != nil {
		return nil, toStatus(err)
	}
	return takenMessage(taken), nil
}

// guardRPC refuses the gRPC calls that their callers may not make, before they are decoded.
func guardRPC(guard *roles.Guard) door.Guard {
	return func(ctx context.Context, method string) (context.Context, error) {
		by := roles.Credentials{}
		if p, known := peer.FromContext(ctx); known {
			by.From = p.Addr.String()
			if shaken, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(shaken.State.VerifiedChains) > 0 {
				by.Certificate = shaken.State.PeerCertificates[0]
			}
		}
		if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) == 1 {
			by.Authorization = given[0]
		}
		caller, err := guard.Admit(method, by)
		if err != nil {
			return nil, toStatus(err)
		}
		return roles.With(ctx, caller), nil
	}
}

// callerOf returns the caller of a call: the host at the other end of its connection. A proxy is
// one caller. The caller is never read from the call itself, because then one client could pass for
// many.
func callerOf(ctx context.Context) string {
	p, known := peer.FromContext(ctx)
	if !known {
		return ""
	}
	return door.HostAt(p.Addr)
}
