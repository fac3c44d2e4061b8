package peer

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
)

// Handler answers a peer's message. It gives up when ctx ends.
type Handler func(ctx context.Context, m exchange.Message) (exchange.Reply, error)

// Server serves the nodes of other regions.
type Server struct {
	peerv1.UnimplementedPeerServiceServer
	grpc   *grpc.Server
	handle Handler
}

const (
	// keepaliveTime is how long a connection may be silent before it is probed; gRPC allows no less.
	keepaliveTime = 10 * time.Second
	// keepaliveTimeout is how long a probe, or unacknowledged data, may go unanswered before the connection is given up.
	keepaliveTimeout = 3 * time.Second
	// mostStreams bounds the messages of one connection that are served at a time.
	mostStreams = 256
)

// NewServer returns a server that hands every message to handle.
func NewServer(handle Handler) *Server {
	s := &Server{handle: handle, grpc: grpc.NewServer(
		grpc.MaxConcurrentStreams(mostStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
	)}
	peerv1.RegisterPeerServiceServer(s.grpc, s)
	return s
}

// Serve accepts connections until Close.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Close ends all connections at once.
func (s *Server) Close() { s.grpc.Stop() }

// Exchange implements peerv1.PeerServiceServer.
func (s *Server) Exchange(ctx context.Context, p *peerv1.ExchangeRequest) (*peerv1.ExchangeResponse, error) {
	if n := len(p.GetAsks()); n > exchange.MostAsks {
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("%d asks in one message, at most %d are served", n, exchange.MostAsks))
	}
	r, err := s.handle(ctx, messageFromProto(p))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return replyToProto(r), nil
}
