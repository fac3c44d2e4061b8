package door

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/region/base/invalid"
)

const (
	// ReceiveTimeout is the time that the message of a call may take to arrive after its headers.
	// Calls whose messages come one by one (reflection) must end within it.
	ReceiveTimeout = 5 * time.Second
	// handshakeTimeout bounds the handshake of a connection. gRPC's own bound is two minutes.
	handshakeTimeout = 10 * time.Second
	// maxHeaderBytes bounds the headers of a call, as HTTP/2 counts them. gRPC's own bound is 16
	// MB. A call with more ends at once, and the connection too if they are far more.
	maxHeaderBytes = 16 << 10
	// streamWindow and connWindow are the bytes that a client may send of one call, and in all,
	// before the node has taken them. They are fixed, because windows that adapt to the line need
	// an answer for every few calls. With many connections that would be most of what the node
	// reads and writes. A large message gets the window it needs while it is awaited.
	streamWindow = 64 << 10
	connWindow   = 1 << 20
	// readBuffer is the buffer of every connection, idle or not.
	readBuffer = 8 << 10
)

// Bounds are the bounds of one gRPC server that differ between servers.
type Bounds struct {
	Streams uint32 // calls of one connection served at a time; more are refused
	// Workers is how many goroutines are kept for calls. A call that finds none idle gets one of
	// its own, whose stack must grow first.
	Workers uint32
	// Message bounds the bytes of a message. A larger one is refused before it is received.
	Message int
	// Records bounds the fields and entries of a message, including those within nested messages.
	// More are refused before they are decoded.
	Records int
	Alive   keepalive.ServerParameters
	// MinPing is how often a client may ask whether the connection lives. One that asks more often
	// is disconnected.
	MinPing time.Duration
}

// Calls stands before the handlers of a gRPC server. The server is made with its Options, and
// services are registered through Of.
type Calls struct {
	bounds Bounds
	panics *Panics
	refuse func(*invalid.Field) error
	// known has the full names of the methods that are served. It does not change once the server
	// serves.
	known map[string]bool

	guard Guard // nil: every call passes
	// lasts has the full names of the methods whose streams last. decoding holds a value for each
	// of their messages that is one of decoders; likewise receiving.
	lasts               map[string]bool
	decoding, receiving chan struct{}
	admit               Admission
	// admitted has the full names of the methods whose calls pass admit.
	admitted map[string]bool
	crowd    *Crowd
	// crowded has the full names of the methods whose calls pass crowd.
	crowded map[string]bool
	// mended has the full names of the methods whose messages are mended.
	mended map[string]bool
}

// Guard decides whether a call may be made, before its message is decoded. It returns the context
// of the call's handler, or the error with which the call is refused.
type Guard func(ctx context.Context, method string) (context.Context, error)

// Guard makes all calls pass a Guard first. Call it before services are registered.
func (c *Calls) Guard(by Guard) { c.guard = by }

// Last names the methods whose streams last. Their first message must come within ReceiveTimeout,
// and after it one every MaxSilence at least. Call it before services are registered.
func (c *Calls) Last(methods ...string) {
	for _, m := range methods {
		c.lasts[m] = true
	}
}

// Crowd makes calls of the given methods pass a Crowd first. Call it before services are
// registered.
func (c *Calls) Crowd(by *Crowd, methods ...string) {
	c.crowd = by
	for _, m := range methods {
		c.crowded[m] = true
	}
}

// NewCalls returns the Calls of one server. refuse makes the error for a bad message. If it is nil
// the error says what is wrong, for servers whose callers are nodes.
func NewCalls(b Bounds, p *Panics, refuse func(*invalid.Field) error) *Calls {
	if refuse == nil {
		refuse = func(bad *invalid.Field) error { return status.Error(codes.InvalidArgument, bad.Error()) }
	}
	return &Calls{bounds: b, panics: p, refuse: refuse, known: map[string]bool{},
		lasts: map[string]bool{}, decoding: make(chan struct{}, decoders), receiving: make(chan struct{}, receivers), admitted: map[string]bool{}, crowded: map[string]bool{}}
}

// Options returns the options that the server needs for its bounds to hold.
func (c *Calls) Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		experimental.BufferPool(buffers),
		grpc.InTapHandle(c.arrives),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxRecvMsgSize(c.bounds.Message),
		grpc.MaxConcurrentStreams(c.bounds.Streams),
		grpc.NumStreamWorkers(c.bounds.Workers),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(c.bounds.Alive),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: c.bounds.MinPing,
			PermitWithoutStream: true}),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ReadBufferSize(readBuffer),
	}
}

// Of returns the Registrar of a server. All its services are registered there, including
// reflection.
func (c *Calls) Of(s *grpc.Server) Registrar { return Registrar{s, c} }

// Registrar registers services so that Calls stands before their handlers.
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
		own.Methods[i].Handler = r.calls.unary(m, "/"+desc.ServiceName+"/"+m.MethodName)
	}
	for i, m := range own.Streams {
		r.calls.known["/"+desc.ServiceName+"/"+m.StreamName] = true
		own.Streams[i].Handler = r.calls.stream(m, "/"+desc.ServiceName+"/"+m.StreamName)
	}
	r.Server.RegisterService(&own, service)
}

// arrival is the context of a call whose message is awaited.
type arrival struct {
	context.Context
	at    time.Time   // when its headers came
	timer *time.Timer // nil: its caller gives up before ReceiveTimeout is over
	late  atomic.Bool
	call  call
	guest guest
}

// arrivals has the arrivals of calls that were refused at once, for use again. Under a flood most
// calls are.
var arrivals = sync.Pool{New: func() any { return new(arrival) }}

type arrivalKey struct{}

// Value implements context.Context.
func (a *arrival) Value(key any) any {
	switch key {
	case arrivalKey{}:
		return a
	case callKey{}:
		return &a.call
	}
	return a.Context.Value(key)
}

// Err implements context.Context. gRPC tells the caller this error.
func (a *arrival) Err() error {
	if a.late.Load() {
		return context.DeadlineExceeded
	}
	return a.Context.Err()
}

// arrives is called with the headers of every call. It allows ReceiveTimeout for the call's
// message. A call whose caller gives up sooner, which gRPC ends then, needs no timer of its own.
func (c *Calls) arrives(ctx context.Context, call *tap.Info) (context.Context, error) {
	on := connOf(ctx)
	if on != nil {
		on.metered.Store(true)
	}
	if !c.known[call.FullMethodName] { // gRPC answers it at once
		return ctx, nil
	}
	a := arrivals.Get().(*arrival)
	a.Context, a.at = ctx, time.Now()
	if c.crowded[call.FullMethodName] {
		if err := a.guest.enter(c.crowd, ctx, a.at); err != nil {
			a.Context, a.guest.waiter = nil, waiter{}
			arrivals.Put(a)
			on.dropped()
			return nil, err
		}
	}
	if ends, known := ctx.Deadline(); known && ends.Sub(a.at) <= ReceiveTimeout {
		return a, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a.Context = ctx
	a.timer = time.AfterFunc(ReceiveTimeout, func() {
		a.late.Store(true)
		cancel()
		if on != nil {
			on.door.late.Add(1)
		}
	})
	return a, nil
}

// arrivalOf returns the arrival of a call, which came through arrives.
func arrivalOf(ctx context.Context) *arrival { return ctx.Value(arrivalKey{}).(*arrival) }

// arrived ends the wait for a call's message.
func (a *arrival) arrived() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// waited returns how long a call has waited for a processor. Call it before anything else.
func (a *arrival) waited() time.Duration { return time.Since(a.at) }

// begins says that the handler has begun. The error says that the caller has gone.
func (a *arrival) begins() error {
	if err := a.guest.begins(a); err != nil {
		return err
	}
	if err := a.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// ends says how the handler has ended.
func (a *arrival) ends(err error) {
	a.guest.leave(a.Err() == nil && status.Code(err) != codes.Unavailable)
}

// connOf returns the connection of a call, or nil if the call came through no door.
func connOf(ctx context.Context) *conn {
	if from, ok := peer.FromContext(ctx); ok {
		if at, ok := from.Addr.(*remote); ok {
			return at.conn
		}
	}
	return nil
}

// unary returns the handler of a method, with what Calls does before and after it.
func (c *Calls) unary(m grpc.MethodDesc, full string) grpc.MethodHandler {
	admitted := c.admitted[full]
	return func(service any, ctx context.Context, receive func(any) error,
		between grpc.UnaryServerInterceptor) (answer any, err error) {
		defer c.panics.Recover(m.MethodName, &err)
		a, on := arrivalOf(ctx), connOf(ctx)
		defer a.arrived()
		defer func() { a.ends(err) }()
		if err := a.begins(); err != nil {
			on.dropped()
			return nil, err
		}
		waited := a.waited()
		if c.guard != nil {
			passed, err := c.guard(ctx, full)
			if err != nil {
				discard(a, on, receive)
				return nil, err
			}
			ctx = passed
		}
		var admit func(message []byte) error
		if admitted {
			one := &a.call
			defer one.done()
			admit = func(message []byte) error { return c.takeInHand(ctx, message, waited, one) }
		}
		answer, err = m.Handler(service, ctx,
			func(into any) error {
				return c.receive(a, on, admit, receive, into.(proto.Message), c.mended[full])
			},
			between)
		if message, ok := answer.(proto.Message); ok && on != nil && err == nil {
			return measured{message, on}, nil
		}
		return answer, err
	}
}

// receive receives and decodes the message of a call. admit is nil if the call needs no admission.
func (c *Calls) receive(a *arrival, on *conn, admit func(message []byte) error,
	receive func(any) error, into proto.Message, mends bool) error {
	var b body
	defer b.free()
	if err := receive(&b); err != nil {
		return err
	}
	a.arrived()
	if on != nil {
		on.delivered(len(b.bytes()) + callOverhead)
	}
	if admit != nil {
		if err := admit(b.bytes()); err != nil {
			return err
		}
	}
	bad := decode(b.bytes(), into, c.bounds.Records)
	if bad != nil && mends && bad.Name != WholeMessage {
		bad = decode(mended(b.bytes(), into), into, c.bounds.Records)
	}
	if bad != nil {
		return c.refuse(bad)
	}
	return nil
}

// discard receives the message of a refused call and forgets it, so that the connection does not
// count as holding it.
func discard(a *arrival, on *conn, receive func(any) error) {
	var b body
	defer b.free()
	if receive(&b) != nil {
		return
	}
	a.arrived()
	if on != nil {
		on.delivered(len(b.bytes()) + callOverhead)
	}
}

// stream returns the handler of a method of several messages, with what Calls does before and after
// it.
func (c *Calls) stream(m grpc.StreamDesc, full string) grpc.StreamHandler {
	return func(service any, s grpc.ServerStream) (err error) {
		defer c.panics.Recover(m.StreamName, &err)
		ctx := s.Context()
		defer arrivalOf(ctx).arrived()
		if c.guard != nil {
			if ctx, err = c.guard(ctx, full); err != nil {
				return err
			}
		}
		switch {
		case c.lasts[full]:
			l := c.lasting(ctx, s)
			defer l.over()
			s = l
		case !m.ClientStreams:
			on := connOf(ctx)
			if !on.watches() {
				return status.Errorf(codes.ResourceExhausted, "a connection has at most %d calls of %s "+
					"at a time: end one, or use one for all", maxWatches, m.StreamName)
			}
			defer on.watched()
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
	arrivalOf(s.Context()).arrived()
	return err
}
