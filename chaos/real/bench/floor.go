package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Floor is a gRPC server of the API that gives the same answer to every check. It does what no
// server can leave out: it receives and decodes requests, and encodes and sends answers.
type Floor struct {
	// Answer is the path of the answer to every check: an encoded CheckResponse, or with HTTP a
	// decision as JSON.
	Answer string
	// HTTP says to serve HTTP in place of gRPC.
	HTTP bool
	// Redis is the host:port of a Redis. If it is given, one lean script call for each of Limits, 1
	// to 64, precedes each decision.
	Redis  string
	Limits int
}

// options are those of the server of a node (region/front/callers and region/base/door) that concern the
// connections. What a node does beyond that for each call, to protect itself, is part of its cost.
func options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxHeaderListSize(16 << 10),
		grpc.MaxRecvMsgSize(1 << 20),
		grpc.MaxConcurrentStreams(1024),
		grpc.StaticStreamWindowSize(64 << 10),
		grpc.StaticConnWindowSize(1 << 20),
		grpc.ReadBufferSize(8 << 10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute,
			Timeout: 20 * time.Second}),
	}
}

// Serve prints the address at which it listens, and serves until ctx ends.
func (f Floor) Serve(ctx context.Context, out io.Writer) error {
	server, err := f.server(ctx)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	defer context.AfterFunc(ctx, server.Stop)()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}

// stopper is a server that serves until it is stopped.
type stopper interface {
	Serve(net.Listener) error
	Stop()
}

// server returns the server, which serves nothing yet.
func (f Floor) server(ctx context.Context) (stopper, error) {
	raw, err := os.ReadFile(f.Answer)
	if err != nil {
		return nil, fmt.Errorf("read the answer to give: %w", err)
	}
	var l *lean
	if f.Limits < 1 || f.Limits > maxLimits {
		return nil, fmt.Errorf("--limits %d: give 1 to %d", f.Limits, maxLimits)
	}
	if f.Redis != "" {
		if l, err = newLean(ctx, f.Redis, f.Limits); err != nil {
			return nil, err
		}
	}
	if f.HTTP {
		return newWebFloor(raw, l), nil
	}
	c := &constant{answer: &quotadv1.CheckResponse{}, lean: l}
	if err := proto.Unmarshal(raw, c.answer); err != nil || c.answer.Decision == nil {
		return nil, fmt.Errorf("%s is not an encoded CheckResponse: %w", f.Answer,
			errors.Join(err, errors.New("write one with quotad bench")))
	}
	server := grpc.NewServer(options()...)
	quotadv1.RegisterQuotaServiceServer(server, c)
	ratelimit.RegisterRateLimitServiceServer(server, c)
	return server, nil
}

// constant is the service of a Floor.
type constant struct {
	quotadv1.UnimplementedQuotaServiceServer
	answer *quotadv1.CheckResponse
	lean   *lean // nil: nothing is decided
}

// Check implements quotad.v1.QuotaService.
func (c *constant) Check(ctx context.Context,
	m *quotadv1.CheckRequest) (*quotadv1.CheckResponse, error) {
	if c.lean != nil {
		if err := c.lean.decide(ctx, []string{m.Descriptors[descriptor]}); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	}
	return c.answer, nil
}

// ShouldRateLimit implements envoy.service.ratelimit.v3.RateLimitService. It decides nothing.
func (*constant) ShouldRateLimit(context.Context,
	*ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	return &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK,
		Statuses: []*ratelimit.RateLimitResponse_DescriptorStatus{
			{Code: ratelimit.RateLimitResponse_OK}}}, nil
}

// CheckBatch implements quotad.v1.QuotaService.
func (c *constant) CheckBatch(ctx context.Context,
	m *quotadv1.CheckBatchRequest) (*quotadv1.CheckBatchResponse, error) {
	decisions, keys := make([]*quotadv1.Decision, len(m.Requests)), []string(nil)
	for i, q := range m.Requests {
		decisions[i] = c.answer.Decision
		if c.lean != nil {
			keys = append(keys, q.Descriptors[descriptor])
		}
	}
	if c.lean != nil {
		if err := c.lean.decide(ctx, keys); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	}
	return &quotadv1.CheckBatchResponse{Decisions: decisions}, nil
}
