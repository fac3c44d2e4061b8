package door

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
)

const (
	// ReceiveTimeout is how long the message of a call may take to arrive once its headers have. Calls whose messages
	// come one by one (reflection) must end within it.
	ReceiveTimeout = 5 * time.Second
	// handshakeTimeout bounds what a connection may take until it can be used; gRPC's own bound is two minutes.
	handshakeTimeout = 10 * time.Second
	// maxHeaderBytes bounds the headers of a call, as HTTP/2 counts them; gRPC's own bound is 16 MB. A call with more
	// ends at once, and the connection with it if they are far more.
	maxHeaderBytes = 16 << 10
	// streamWindow and connWindow are what a client may send of a call, and in all, until the node has taken it. They are set,
	// because windows that follow the line ask for an answer with every few calls: on many connections that is most of what
	// the node reads and writes. A large message gets the window it needs once it is awaited.
	streamWindow = 64 << 10
	connWindow   = 1 << 20
	// readBuffer is what every connection costs, idle or not.
	readBuffer = 8 << 10
)

// Bounds are those of one gRPC server, where they differ between servers.
type Bounds struct {
	Streams uint32 // calls of one connection that are served at a time; more are refused
	Message int    // bytes of a message; a larger one is refused before it is received
	Records int    // fields and entries of a message, those within it included; more are refused before they are decoded
	Alive   keepalive.ServerParameters
	// MinPing is how often a client may ask whether the connection lives; one that asks more often is sent away.
	MinPing time.Duration
}

// Calls stands before the handlers of a gRPC server, which is made with its Options and whose services are registered
// through Of.
type Calls struct {
	bounds Bounds
	panics *Panics
	refuse func(BadField) error
	known  map[string]bool // full names of the methods that are served; never changed once the server serves

	admit    Admission
	admitted map[string]bool // full names of the methods whose calls admit lets in
}

// BadField says what is wrong with a message, and where.
type BadField struct {
	Path    string // of the message that the field is in: empty, or requests[3].
	Field   string
	Problem string
}

// NewCalls returns what stands before the handlers of one server. With refuse a bad message is told to its caller; nil tells
// it as it is, where callers are nodes.
func NewCalls(b Bounds, p *Panics, refuse func(BadField) error) *Calls {
	if refuse == nil {
		refuse = func(bad BadField) error {
			return status.Errorf(codes.InvalidArgument, "%s%s: %s", bad.Path, bad.Field, bad.Problem)
		}
	}
	return &Calls{bounds: b, panics: p, refuse: refuse, known: map[string]bool{}, admitted: map[string]bool{}}
}

// Options are those that a server needs for its bounds to hold.
func (c *Calls) Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		grpc.InTapHandle(c.arrives),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxRecvMsgSize(c.bounds.Message),
		grpc.MaxConcurrentStreams(c.bounds.Streams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(c.bounds.Alive),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: c.bounds.MinPing, PermitWithoutStream: true}),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ReadBufferSize(readBuffer),
	}
}

// Of returns what the services of a server are registered with, reflection included.
func (c *Calls) Of(s *grpc.Server) Registrar { return Registrar{s, c} }

// Registrar registers services with Calls before their handlers.
type Registrar struct {
	*grpc.Server
	calls *Calls
}

// RegisterService implements grpc.ServiceRegistrar.
func (r Registrar) RegisterService(desc *grpc.ServiceDesc, service any) {
	own := *desc
	own.Methods = append([]grpc.MethodDesc{}, desc.Methods...)
	own.Streams = append([]grpc.StreamDesc{}, desc.Streams...)
	for i, m := range own.Methods {
		r.calls.known["/"+desc.ServiceName+"/"+m.MethodName] = true
		own.Methods[i].Handler = r.calls.unary(m, r.calls.admitted["/"+desc.ServiceName+"/"+m.MethodName])
	}
	for i, m := range own.Streams {
		r.calls.known["/"+desc.ServiceName+"/"+m.StreamName] = true
		own.Streams[i].Handler = r.calls.stream(m)
	}
	r.Server.RegisterService(&own, service)
}

// arrival is the context of a call whose message is awaited.
type arrival struct {
	context.Context
	at    time.Time // when its headers came
	timer *time.Timer
	late  atomic.Bool
}

type arrivalKey struct{}

// Value implements context.Context.
func (a *arrival) Value(key any) any {
	if key == (arrivalKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// Err implements context.Context. What it says is what gRPC tells the caller.
func (a *arrival) Err() error {
	if a.late.Load() {
		return context.DeadlineExceeded
	}
	return a.Context.Err()
}

// arrives is called with the headers of every call, and gives it until ReceiveTimeout for its message.
func (c *Calls) arrives(ctx context.Context, call *tap.Info) (context.Context, error) {
	on := connOf(ctx)
	if on != nil {
		on.metered.Store(true)
	}
	if !c.known[call.FullMethodName] { // answered at once
		return ctx, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &arrival{Context: ctx, at: time.Now()}
	a.timer = time.AfterFunc(ReceiveTimeout, func() {
		a.late.Store(true)
		cancel()
		if on != nil {
			on.door.late.Add(1)
		}
	})
	return a, nil
}

// arrived ends the wait for a call's message.
func arrived(ctx context.Context) {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok {
		a.timer.Stop()
	}
}

// waited is how long a call that came through arrives has waited for a processor; call it first of all.
func waited(ctx context.Context) time.Duration {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok {
		return time.Since(a.at)
	}
	return 0
}

// connOf returns the connection of a call; nil if it came through no door.
func connOf(ctx context.Context) *conn {
	if from, ok := peer.FromContext(ctx); ok {
		if at, ok := from.Addr.(*remote); ok {
			return at.conn
		}
	}
	return nil
}

// unary returns the handler of a method with all that Calls does before and after.
func (c *Calls) unary(m grpc.MethodDesc, admitted bool) grpc.MethodHandler {
	return func(service any, ctx context.Context, receive func(any) error, between grpc.UnaryServerInterceptor) (answer any, err error) {
		defer c.panics.Recover(m.MethodName, &err)
		defer arrived(ctx)
		on := connOf(ctx)
		var one *call
		if admitted {
			one = &call{waited: waited(ctx)}
			ctx = context.WithValue(ctx, callKey{}, one)
			defer one.done()
		}
		answer, err = m.Handler(service, ctx, func(into any) error { return c.receive(ctx, on, one, receive, into.(proto.Message)) }, between)
		if message, ok := answer.(proto.Message); ok && on != nil && err == nil {
			on.answered(proto.Size(message))
		}
		return answer, err
	}
}

// receive receives and decodes the message of a call; one is nil if it needs no admission.
func (c *Calls) receive(ctx context.Context, on *conn, one *call, receive func(any) error, into proto.Message) error {
	var b body
	defer b.free()
	if err := receive(&b); err != nil {
		return err
	}
	arrived(ctx)
	if on != nil {
		on.delivered(len(b.bytes()) + callOverhead)
	}
	if one != nil {
		held, err := c.admit(ctx, b.bytes(), one.waited)
		if err != nil {
			return err
		}
		one.held.Store(held)
	}
	if bad := decode(b.bytes(), into, c.bounds.Records); bad != nil {
		return c.refuse(*bad)
	}
	return nil
}

// stream returns the handler of a method of several messages with all that Calls does before and after.
func (c *Calls) stream(m grpc.StreamDesc) grpc.StreamHandler {
	return func(service any, s grpc.ServerStream) (err error) {
		defer c.panics.Recover(m.StreamName, &err)
		defer arrived(s.Context())
		if !m.ClientStreams {
			s = oneMessage{s}
		}
		return m.Handler(service, s)
	}
}

// oneMessage is a stream whose client sends one message.
type oneMessage struct{ grpc.ServerStream }

// RecvMsg implements grpc.ServerStream.
func (s oneMessage) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	arrived(s.Context())
	return err
}
