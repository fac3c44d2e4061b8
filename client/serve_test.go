package client_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// served is a gRPC server on the loopback interface that answers for a node.
type served struct {
	quotadv1.UnimplementedQuotaServiceServer
	at   string
	name string // of its decisions
	// holds, if not nil, keeps each call until it is closed or the call is given up.
	holds  chan struct{}
	server *grpc.Server

	mu     sync.Mutex
	calls  int
	tokens []string // the authorization of each call
}

// serve starts a server, which ends with the test at the latest.
func serve(t testing.TB, s *served, options ...grpc.ServerOption) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	return serveOn(t, s, l, options...)
}

// serveOn starts a server on a listener.
func serveOn(t testing.TB, s *served, l net.Listener, options ...grpc.ServerOption) *served {
	t.Helper()
	s.at, s.server = l.Addr().String(), grpc.NewServer(options...)
	quotadv1.RegisterQuotaServiceServer(s.server, s)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.server.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.server.Stop()
		serving.Wait()
	})
	return s
}

// comes counts a call and keeps it. The error is that of a call that was given up.
func (s *served) comes(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	s.calls++
	s.tokens = append(s.tokens, md.Get("authorization")...)
	s.mu.Unlock()
	if s.holds != nil {
		select {
		case <-s.holds:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return nil
}

// count returns how many calls came.
func (s *served) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Check admits every request.
func (s *served) Check(ctx context.Context, m *quotadv1.CheckRequest) (*quotadv1.CheckResponse,
	error) {
	if err := s.comes(ctx); err != nil {
		return nil, err
	}
	return &quotadv1.CheckResponse{Decision: s.decide(m)}, nil
}

// CheckBatch admits every request.
func (s *served) CheckBatch(ctx context.Context,
	m *quotadv1.CheckBatchRequest) (*quotadv1.CheckBatchResponse, error) {
	if err := s.comes(ctx); err != nil {
		return nil, err
	}
	r := &quotadv1.CheckBatchResponse{}
	for _, one := range m.Requests {
		r.Decisions = append(r.Decisions, s.decide(one))
	}
	return r, nil
}

// decide admits a request. What is left says which one it is.
func (s *served) decide(m *quotadv1.CheckRequest) *quotadv1.Decision {
	return &quotadv1.Decision{Allowed: true, Reason: quotadv1.Reason_REASON_WITHIN_LIMIT,
		Limit: "account", Remaining: m.GetCost(), Node: s.name, Epoch: "v1-abc",
		Limits: []*quotadv1.LimitState{{Limit: "account", Remaining: proto.Int64(3)},
			{Limit: "ip", Algorithm: "gcra"}}}
}

// dialed returns a client of addresses, which is closed at the end of the test.
func dialed(t testing.TB, o client.Options, addresses ...string) *client.Client {
	t.Helper()
	c, err := client.Dial(o, addresses...)
	suite.Must(t, err)
	t.Cleanup(func() {
		suite.Must(t, c.Close())
	})
	return c
}

// request is what tests ask about.
func request(cost int64) client.Request {
	return client.Request{Domain: "api", Descriptors: account, Cost: cost}
}
