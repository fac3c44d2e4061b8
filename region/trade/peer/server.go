package peer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/memory/copies"
)

// Handler answers a peer's message. It gives up when ctx ends.
type Handler func(ctx context.Context, m exchange.Message) (exchange.Reply, error)

// Handlers answer what other nodes call, each the call of its name.
type Handlers struct {
	Exchange Handler
	Recall   RecallHandler
	Copy     CopyHandler     // nil: no copies are kept
	Store    StoreHandler    // nil: nobody says which store this node decides with
	Document DocumentHandler // nil: no documents are given away
}

// Server serves other nodes, of other regions and of its own.
type Server struct {
	peerv1.UnimplementedPeerServiceServer
	grpc     *grpc.Server
	handlers Handlers
	describe atomic.Pointer[DescribeHandler] // nil: it is not told yet
	tls      *TLS

	panics *door.Panics
	shaken *door.Handshakes

	// Counters of what was refused; see Refusals.
	handshakes, otherRegion, otherNode, tooManyAsks atomic.Uint64
}

const (
	// keepaliveTime is how long a connection may be silent before it is probed. gRPC allows no
	// less.
	keepaliveTime = 10 * time.Second
	// keepaliveTimeout is how long a probe or data may stay unanswered before the connection is
	// given up.
	keepaliveTimeout = 3 * time.Second
	// maxStreams bounds how many messages of one connection are served at a time.
	maxStreams = 256
	// maxMessageBytes bounds a message. A message of exchange.MaxAsks asks with the longest bucket
	// ids has some 1.5 MB.
	maxMessageBytes = 4 << 20
	// maxRecords bounds the fields of a message and of its asks, at twice what an honest message
	// has.
	maxRecords = 2 * 6 * exchange.MaxAsks
	// idleTimeout is how long a connection without calls is kept. Nodes ping each other once a
	// second or more often.
	idleTimeout = time.Minute
	// trustGrace is how long calls under way may go on when a connection has reached maxTrust.
	trustGrace = 10 * time.Second
	// maxTrust is how long a connection with certificates is used before another one replaces
	// it. So an authority that is no longer trusted is not used for long.
	maxTrust = 10 * time.Minute
)

// NewServer returns a server that passes every call to its handler. With TLS it passes only those
// whose caller's certificate names the region and node that the message says it is from. With a nil
// t it passes all, in plain text.
func NewServer(h Handlers, t *TLS) *Server {
	if h.Document == nil {
		h.Document = func([sha256.Size]byte) []byte { return nil }
	}
	if h.Copy == nil {
		h.Copy = func(context.Context, Identity, copies.Part) (uint64, error) {
			return 0, errors.New("this node keeps no copies")
		}
	}
	s := &Server{handlers: h, tls: t}
	alive := keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout,
		MaxConnectionIdle: idleTimeout}
	trust := insecure.NewCredentials()
	if t != nil {
		alive.MaxConnectionAge, alive.MaxConnectionAgeGrace = maxTrust, trustGrace
		trust = proof{tls: t, failed: func() { s.handshakes.Add(1) }}
	}
	s.shaken = door.NewHandshakes(slog.New(slog.DiscardHandler), "peer")
	s.panics = door.NewPanics(slog.New(slog.DiscardHandler), "peer/", func(string) {})
	calls := door.NewCalls(door.Bounds{Streams: maxStreams, Message: maxMessageBytes,
		Records: maxRecords, Alive: alive,
		MinPing: keepaliveTime / 2}, s.panics, nil)
	s.grpc = grpc.NewServer(append(calls.Options(), grpc.Creds(s.shaken.Credentials(trust)))...)
	peerv1.RegisterPeerServiceServer(calls.Of(s.grpc), s)
	return s
}

// Tell makes a server log panics and failed handshakes, at most once a minute, the former for each
// place, and call count for each panic. Call it before Serve.
func (s *Server) Tell(log *slog.Logger, count func(where string)) {
	s.panics.Tell(log, count)
	s.shaken.Tell(log)
}

// Refusals counts what a server refused since its start.
type Refusals struct {
	// Handshakes: connections without TLS 1.3, or without a trusted certificate that names a node.
	Handshakes  uint64
	OtherRegion uint64 // messages in the name of another region than the certificate's
	OtherNode   uint64 // messages in the name of another node of that region
	TooManyAsks uint64 // messages with more asks, questions with more doubts, or copies with more uses than are taken
}

// Refused returns the counts of what the server refused.
func (s *Server) Refused() Refusals {
	return Refusals{Handshakes: s.handshakes.Load(), OtherRegion: s.otherRegion.Load(),
		OtherNode: s.otherNode.Load(), TooManyAsks: s.tooManyAsks.Load()}
}

// Serve accepts connections until Close.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Close ends all connections at once.
func (s *Server) Close() { s.grpc.Stop() }

// Exchange implements peerv1.PeerServiceServer.
func (s *Server) Exchange(ctx context.Context, p *peerv1.ExchangeRequest) (*peerv1.ExchangeResponse,
	error) {
	if err := s.authenticate(ctx, Identity{p.GetRegion(), p.GetNode()}); err != nil {
		return nil, err
	}
	if n := len(p.GetAsks()); n > exchange.MaxAsks {
		s.tooManyAsks.Add(1)
		return nil, status.Error(codes.InvalidArgument,
			fmt.Sprintf("%d asks in one message, at most %d are served", n, exchange.MaxAsks))
	}
	r, err := s.handlers.Exchange(ctx, messageFromProto(p))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return replyToProto(r), nil
}

// authenticate refuses a message in another name than that of the caller's certificate. Without TLS
// it refuses nothing.
func (s *Server) authenticate(ctx context.Context, says Identity) error {
	if s.tls == nil {
		return nil
	}
	is := identityOf(ctx)
	switch {
	case is == Identity{} || says.Region != is.Region:
		s.otherRegion.Add(1)
		return status.Errorf(codes.PermissionDenied,
			"the message is from region %.70q, and the certificate that of %s", says.Region, is)
	case says.Node != is.Node:
		s.otherNode.Add(1)
		return status.Errorf(codes.PermissionDenied,
			"the message is from node %.70q, and the certificate that of %s", says.Node, is)
	}
	return nil
}

// identityOf returns the identity of the caller's certificate, zero without TLS.
func identityOf(ctx context.Context) Identity {
	from, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return Identity{}
	}
	c, _ := from.AuthInfo.(caller)
	return c.Identity
}
