package grpclimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/grpclimit"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers decides every call alike, and remembers the last.
type answers struct {
	d     client.Decision
	err   error
	asked client.Request
	calls int
}

func (a *answers) Check(_ context.Context, q client.Request) (client.Decision, error) {
	a.asked = q
	a.calls++
	return a.d, a.err
}

// byMethod is a key that tests also limit health checks with.
func byMethod(_ context.Context, call grpclimit.Call) (grpclimit.Charge, bool) {
	return grpclimit.Charge{Descriptors: map[string]string{"method": call.Method}, Cost: 3}, true
}

var options = grpclimit.Options{Domain: "api", Key: byMethod}

// served returns a client of a server of health checks behind the interceptors.
func served(t *testing.T, c grpclimit.Checker) grpc_health_v1.HealthClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	s := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(c, options)),
		grpc.StreamInterceptor(grpclimit.Stream(c, options)))
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	conn, err := grpc.NewClient(l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	suite.Must(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop()
		serving.Wait()
	})
	return grpc_health_v1.NewHealthClient(conn)
}

// call makes a unary call or opens a stream, and returns how that ended.
func call(t *testing.T, c grpclimit.Checker, streams bool) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rpc := served(t, c)
	if !streams {
		_, err := rpc.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	stream, err := rpc.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

func TestCalls(t *testing.T) {
	for streams, method := range map[bool]string{false: "/grpc.health.v1.Health/Check",
		true: "/grpc.health.v1.Health/Watch"} {
		a := &answers{d: client.Decision{Allowed: true}}
		if err := call(t, a, streams); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if a.calls != 1 || a.asked.Domain != "api" || a.asked.Cost != 3 ||
			a.asked.Descriptors["method"] != method {
			t.Errorf("%s: asked %d times, %+v", method, a.calls, a.asked)
		}
		a.d = client.Decision{Reason: quotadv1.Reason_REASON_OVER_LIMIT, Limit: "account",
			LimitUnits: 100, RetryAfter: time.Second}
		err := call(t, a, streams)
		retry, limits := details(err)
		if status.Code(err) != codes.ResourceExhausted || retry != time.Second ||
			limits != "limit:account the limit is 100 units" {
			t.Errorf("%s: %v, %v, %s", method, err, retry, limits)
		}
	}
}

// details returns when to retry, and the limits, as an error tells them.
func details(err error) (retry time.Duration, limits string) {
	var all []string
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration()
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				all = append(all, v.GetSubject()+" "+v.GetDescription())
			}
		}
	}
	return retry, strings.Join(all, ", ")
}

// intercept returns what an interceptor says of a call, without a server.
func intercept(ctx context.Context, c grpclimit.Checker, o grpclimit.Options) error {
	served, err := grpclimit.Unary(c, o)(ctx, "hello",
		&grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
		func(context.Context, any) (any, error) { return "served", nil })
	if (err == nil) != (served == "served") {
		return fmt.Errorf("the handler said %v: %w", served, err)
	}
	return err
}

func TestDenials(t *testing.T) {
	several := client.Decision{Reason: quotadv1.Reason_REASON_OVER_LIMIT, Limit: "a",
		Limits: []client.LimitState{{Limit: "a", LimitUnits: 1}, {Limit: "b", LimitUnits: 2},
			{Limit: "shadow", Shadow: true}, {Limit: "roomy", Admits: true}}}
	for name, one := range map[string]struct {
		a      answers
		code   codes.Code
		retry  time.Duration
		limits string
	}{
		"several limits": {answers{d: several}, codes.ResourceExhausted, 0,
			"limit:a the limit is 1 units, limit:b the limit is 2 units"},
		"the store failed": {answers{d: client.Decision{Limit: "a",
			Reason: quotadv1.Reason_REASON_STORE_FAILURE}}, codes.Unavailable, 0, ""},
		"no node": {answers{d: client.Decision{Unreachable: true, RetryAfter: time.Second,
			Reason: quotadv1.Reason_REASON_STORE_FAILURE}}, codes.Unavailable, time.Second, ""},
		"a local limit": {answers{d: client.Decision{Unreachable: true, RetryAfter: time.Second,
			Reason: quotadv1.Reason_REASON_STORE_FAILURE_LOCAL}}, codes.ResourceExhausted,
			time.Second, ""},
		"an error": {answers{err: errors.New("secret")}, codes.Unavailable, 0, ""},
	} {
		var told error
		o := options
		o.Report = func(_ context.Context, method string, err error) {
			told = fmt.Errorf("%s: %w", method, err)
		}
		err := intercept(t.Context(), &one.a, o)
		retry, limits := details(err)
		if status.Code(err) != one.code || retry != one.retry || limits != one.limits ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v, %q", name, err, retry, limits)
		}
		if one.a.err != nil && (told == nil || told.Error() != "/a.B/C: secret") {
			t.Errorf("%s: told %v", name, told)
		}
	}
}

// A call that a leaky bucket delays is held, as long as was said and its client waits.
func TestWaiting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := &answers{d: client.Decision{Allowed: true, Delay: 300 * time.Millisecond}}
		begun := time.Now()
		if err := intercept(t.Context(), a, options); err != nil || time.Since(begun) != 0 {
			t.Errorf("without MaxWait: %v after %v", err, time.Since(begun))
		}
		o := options
		o.MaxWait = time.Second
		if err := intercept(t.Context(), a, o); err != nil || time.Since(begun) != a.d.Delay {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := intercept(ctx, a, o); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a caller that gave up: %v", err)
		}
		a.d.Delay = 3 * time.Second
		err := intercept(t.Context(), a, o)
		if retry, _ := details(err); status.Code(err) != codes.ResourceExhausted ||
			retry != 2*time.Second {
			t.Errorf("longer than MaxWait: %v, %v", err, retry)
		}
	})
}

// Without a Report errors are logged, once a second at most.
func TestErrorsAreLogged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		i := grpclimit.Unary(&answers{err: errors.New("no node")}, options)
		for range 10 {
			_, _ = i(t.Context(), nil, &grpc.UnaryServerInfo{}, nil)
		}
		if n := strings.Count(log.String(), "no node"); n != 1 {
			t.Errorf("%d errors in the log, want 1:\n%s", n, &log)
		}
	})
}

func TestBy(t *testing.T) {
	key := grpclimit.By(grpclimit.Values{"account": grpclimit.Metadata("x-account"),
		"method": grpclimit.Method(), "ip": grpclimit.Peer()})
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-account", "42"))
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{
		IP: net.ParseIP("2001:db8:1:2:3::4"), Port: 5}})
	got, applies := key(ctx, grpclimit.Call{Method: "/a.B/C"})
	if want := "map[account:42 ip:2001:db8:1:2::/64 method:/a.B/C]"; !applies ||
		fmt.Sprint(got.Descriptors) != want {
		t.Errorf("%v, want %s", got.Descriptors, want)
	}
	got, applies = key(peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UnixAddr{}}),
		grpclimit.Call{})
	if !applies || fmt.Sprint(got.Descriptors) != "map[account: ip: method:]" {
		t.Errorf("of nothing: %v", got.Descriptors)
	}
	if _, applies = key(ctx, grpclimit.Call{Method: "/grpc.health.v1.Health/Check"}); applies {
		t.Error("health checks are limited")
	}
	a := &answers{}
	o := options
	o.Key = key
	call := grpclimit.Stream(a, o)
	if err := call(nil, stream{ctx: ctx}, &grpc.StreamServerInfo{
		FullMethod: "/grpc.health.v1.Health/Watch"},
		func(any, grpc.ServerStream) error { return nil }); err != nil || a.calls != 0 {
		t.Errorf("%v, asked %d times", err, a.calls)
	}
}

// stream is one of which only the context is used.
type stream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s stream) Context() context.Context { return s.ctx }

func TestBadOptions(t *testing.T) {
	for says, o := range map[string]grpclimit.Options{
		"Options.Domain is empty":  {Key: byMethod},
		"Options.Key is nil":       {Domain: "api"},
		"Options.MaxWait is -1ns;": {Domain: "api", Key: byMethod, MaxWait: -1},
	} {
		func() {
			defer func() {
				if p := recover(); !strings.Contains(fmt.Sprint(p), says) {
					t.Errorf("%v, want %q", p, says)
				}
			}()
			grpclimit.Unary(&answers{}, o)
		}()
	}
}
