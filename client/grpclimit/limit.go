package grpclimit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/internal/ask"
)

// reportEvery is the least time between two errors that are logged if Options.Report is nil.
const reportEvery = time.Second

// Checker decides requests. It is a *client.Client.
type Checker = ask.Checker

// Options say what is asked about a call. Domain and Key must be given.
type Options struct {
	Domain string // of the limits document
	Key    Key
	// MaxWait is for how long a call is held that a leaky bucket delays. One that would be held
	// longer is denied, and what it was charged stays spent; so it does if its client gives up
	// meanwhile. 0: no call is held, and each that was admitted is served at once.
	MaxWait time.Duration
	// NoDimensions leaves what a call is described by out of its denial. Callers are told it else:
	// it is their own.
	NoDimensions bool
	// Report is told why a call of a method could not be decided. nil: slog.Default logs it, once a
	// second at most.
	Report func(ctx context.Context, method string, err error)
}

// Unary returns an interceptor for calls with one message each way. It panics if the options lack
// what they must have.
func Unary(c Checker, o Options) grpc.UnaryServerInterceptor {
	l := newLimiter(c, o)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo,
		next grpc.UnaryHandler) (any, error) {
		if err := l.admit(ctx, Call{Method: info.FullMethod, Request: request}); err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// Stream returns an interceptor for streams, which are charged when they begin. It panics as Unary
// does.
func Stream(c Checker, o Options) grpc.StreamServerInterceptor {
	l := newLimiter(c, o)
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
		next grpc.StreamHandler) error {
		if err := l.admit(stream.Context(), Call{Method: info.FullMethod}); err != nil {
			return err
		}
		return next(server, stream)
	}
}

type limiter struct {
	checker Checker
	options Options
}

func newLimiter(c Checker, o Options) *limiter {
	switch {
	case c == nil:
		panic("grpclimit: no client; make one with client.Dial")
	case o.Domain == "":
		panic("grpclimit: Options.Domain is empty; name a domain of the limits document")
	case o.Key == nil:
		panic("grpclimit: Options.Key is nil; give grpclimit.By(...) or a function of your own")
	case o.MaxWait < 0:
		panic(fmt.Sprintf("grpclimit: Options.MaxWait is %v; give 0 or more", o.MaxWait))
	}
	if o.Report == nil {
		due := ask.Seldom(reportEvery)
		o.Report = func(ctx context.Context, method string, err error) {
			if due() {
				slog.ErrorContext(ctx, "grpclimit: a call could not be decided", "method", method,
					"error", err)
			}
		}
	}
	return &limiter{c, o}
}

// admit returns the status of a call that is not to be served, nil for all others.
func (l *limiter) admit(ctx context.Context, call Call) error {
	charge, applies := l.options.Key(ctx, call)
	if !applies {
		return nil
	}
	d, err := l.checker.Check(ctx, client.Request{Domain: l.options.Domain,
		Descriptors: charge.Descriptors, Cost: charge.Cost})
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if err != nil {
		l.options.Report(ctx, call.Method, err)
		return status.Error(codes.Unavailable, "the limits could not be checked")
	}
	d = ask.MaxDelay(d, l.options.MaxWait)
	if !d.Allowed {
		return l.deny(ctx, charge, d)
	}
	if l.options.MaxWait > 0 && !ask.Wait(ctx, d.Delay) {
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}
