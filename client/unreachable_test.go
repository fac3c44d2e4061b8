package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// failing is a connection whose calls fail; nil: they last until their context ends.
type failing struct {
	*fakeNode
	err error
}

// Invoke implements grpc.ClientConnInterface.
func (f failing) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	if f.err != nil {
		return f.err
	}
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// choices are the options for each choice of what to do without a node.
func choices() map[client.OnUnreachable]client.Options {
	all := map[client.OnUnreachable]client.Options{}
	for _, u := range []client.OnUnreachable{client.Fail, client.Allow, client.Deny, client.Local} {
		all[u] = client.Options{OnUnreachable: u, Local: client.LocalLimit{Rate: 1, Burst: 2}}
	}
	return all
}

var reasons = map[client.OnUnreachable]quotadv1.Reason{
	client.Allow: quotadv1.Reason_REASON_STORE_FAILURE_ALLOWED,
	client.Deny:  quotadv1.Reason_REASON_STORE_FAILURE,
	client.Local: quotadv1.Reason_REASON_STORE_FAILURE_LOCAL}

// wantAlone makes five calls without a node, one after the other. It fails the test unless they are
// decided as was chosen.
func wantAlone(t *testing.T, c *client.Client, u client.OnUnreachable, code codes.Code) {
	t.Helper()
	allowed := map[client.OnUnreachable]int{client.Allow: 5, client.Local: 2}[u]
	for n := range 5 {
		d, err := c.Check(t.Context(), request(1))
		if u == client.Fail {
			if status.Code(err) != code || d.Unreachable || d.Allowed {
				t.Fatalf("%v, call %d: %+v, %v", u, n, d, err)
			}
			continue
		}
		if err != nil || !d.Unreachable || d.Allowed != (n < allowed) || d.Reason != reasons[u] {
			t.Fatalf("%v, call %d: %+v, %v", u, n, d, err)
		}
	}
	s := c.Stats()
	want := client.Stats{Asked: s.Asked, Unreachable: 5, UnreachableAllowed: int64(allowed)}
	if u != client.Fail {
		want.UnreachableDenied = int64(5 - allowed)
	}
	if s != want {
		t.Errorf("%v: %+v", u, s)
	}
}

func TestOnUnreachable(t *testing.T) {
	for u, o := range choices() {
		for code, err := range map[codes.Code]error{
			codes.Unavailable:       status.Error(codes.Unavailable, "no connection"),
			codes.ResourceExhausted: status.Error(codes.ResourceExhausted, "overloaded"),
			codes.DeadlineExceeded:  nil,
		} {
			bubble.Test(t, func(t *testing.T) {
				o.Timeout = time.Millisecond
				c := client.New(failing{newFake(0), err}, o)
				wantAlone(t, c, u, code)
				closed(t, c)
			})
		}
	}
}

// An error that is the caller's own is never replaced by a decision.
func TestErrorsOfTheCaller(t *testing.T) {
	for u, o := range choices() {
		for _, code := range []codes.Code{codes.InvalidArgument, codes.PermissionDenied,
			codes.Unauthenticated, codes.Internal, codes.Unimplemented} {
			c := client.New(failing{newFake(0), status.Error(code, "no")}, o)
			if d, err := c.Check(t.Context(), request(1)); status.Code(err) != code {
				t.Errorf("%v: %+v, %v, want %v", u, d, err, code)
			}
			closed(t, c)
		}
		bubble.Test(t, func(t *testing.T) {
			c := client.New(failing{newFake(0), nil}, o)
			ctx, cancel := context.WithTimeout(t.Context(), client.DefaultTimeout/2)
			defer cancel()
			if d, err := c.Check(ctx, request(1)); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("%v, a deadline of the caller: %+v, %v", u, d, err)
			}
			// The node may notice a moment before the caller does.
			ctx, cancel = context.WithTimeout(t.Context(), client.DefaultTimeout/2)
			defer cancel()
			early := client.New(failing{newFake(0),
				status.Error(codes.DeadlineExceeded, "late")}, o)
			if d, err := early.Check(ctx, request(1)); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("%v, a deadline that the node noticed: %+v, %v", u, d, err)
			}
			closed(t, early)
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			if d, err := c.Check(ctx, request(1)); status.Code(err) != codes.Canceled {
				t.Errorf("%v, cancelled: %+v, %v", u, d, err)
			}
			gone := client.New(failing{newFake(0), status.Error(codes.Unavailable, "no")}, o)
			if d, err := gone.Check(ctx, request(1)); status.Code(err) != codes.Unavailable {
				t.Errorf("%v, cancelled before: %+v, %v", u, d, err)
			}
			closed(t, gone)
			if s := c.Stats(); s.Unreachable != 0 {
				t.Errorf("%v: %+v", u, s)
			}
			closed(t, c)
		})
	}
}

// The calls that a server holds when it dies are decided as was chosen, and so are those after it.
func TestAServerDiesDuringCalls(t *testing.T) {
	for u, o := range choices() {
		t.Run(u.String(), func(t *testing.T) {
			s := serve(t, &served{holds: make(chan struct{})})
			o.Timeout = 30 * time.Second
			o.Local.Rate = 1e-9
			c := dialed(t, o, s.at)
			go func() {
				for s.count() == 0 {
					time.Sleep(time.Millisecond)
				}
				s.server.Stop()
			}()
			wantAlone(t, c, u, codes.Unavailable)
		})
	}
}

// The callers of a batch that a server holds when it dies, and those who wait for the next one, are
// each decided as was chosen.
func TestAServerDiesDuringABatch(t *testing.T) {
	const callers = 300 // one alone, answered; three alone, a batch of 256, and 40 who wait
	for u, o := range choices() {
		t.Run(u.String(), func(t *testing.T) {
			s := serve(t, &served{holds: make(chan struct{})})
			o.Timeout, o.Local.Rate = 30*time.Second, 1e-9
			c := dialed(t, o, s.at)
			told := make(chan outcome, callers)
			for range callers {
				go func() {
					d, err := c.Check(t.Context(), request(1))
					told <- outcome{d, err}
				}()
			}
			for c.Stats().Asked < callers || s.count() < 4 {
				time.Sleep(time.Millisecond)
			}
			s.holds <- struct{}{}
			for s.count() < 5 {
				time.Sleep(time.Millisecond)
			}
			s.server.Stop()
			var answered, allowed, denied, failed int
			for range callers {
				switch one := <-told; {
				case one.err != nil && status.Code(one.err) == codes.Unavailable:
					failed++
				case one.err == nil && !one.d.Unreachable:
					answered++
				case one.err == nil && one.d.Allowed:
					allowed++
				case one.err == nil:
					denied++
				}
			}
			got := [...]int{answered, allowed, denied, failed}
			want := map[client.OnUnreachable][4]int{client.Fail: {1, 0, 0, 299},
				client.Allow: {1, 299, 0, 0}, client.Deny: {1, 0, 299, 0},
				client.Local: {1, 2, 297, 0}}[u]
			if got != want {
				t.Errorf("answered, allowed, denied and failed: %v, want %v", got, want)
			}
			if st := c.Stats(); st.Batches == 0 || st.Unreachable != callers-1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A bucket learns nothing from what was decided without a node, and asks again.
func TestBucketsWithoutANode(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := failing{newFake(0), status.Error(codes.Unavailable, "no connection")}
		c := client.New(f, client.Options{Prefetch: true, OnUnreachable: client.Deny})
		b := c.Bucket("api", account)
		for range 3 {
			if d := allow(t, b, 1); d.Allowed || !d.Unreachable || d.FromMemory {
				t.Errorf("%+v", d)
			}
		}
		if s := closed(t, c); s.Asked != 3 || s.Unreachable != 3 || s.Failed != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// What waits for a node that accepts connections and never answers is decided after the timeout.
func TestASilentServer(t *testing.T) {
	s := serve(t, &served{holds: make(chan struct{})})
	c := dialed(t, client.Options{OnUnreachable: client.Deny, Timeout: 50 * time.Millisecond}, s.at)
	if d, err := c.Check(t.Context(), request(1)); err != nil || d.Allowed || !d.Unreachable {
		t.Errorf("%+v, %v", d, err)
	}
}

// A denial says when a busy node wants to be asked again.
func TestDenyTellsWhenToRetry(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{time.Second: time.Second,
		time.Hour: time.Minute, -time.Second: 0} {
		busy, err := status.New(codes.ResourceExhausted, "overloaded").WithDetails(
			&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
		suite.Must(t, err)
		c := client.New(failing{newFake(0), busy.Err()}, client.Options{OnUnreachable: client.Deny})
		if d, err := c.Check(t.Context(), request(1)); err != nil || d.RetryAfter != want {
			t.Errorf("%+v, %v, want %v", d, err, want)
		}
		closed(t, c)
	}
}

// A local limit admits its rate for each key, and says when a denied request fits.
func TestLocalLimit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := client.New(failing{newFake(0), status.Error(codes.Unavailable, "no connection")},
			client.Options{OnUnreachable: client.Local,
				Local: client.LocalLimit{Rate: 10, Burst: 4}})
		ask := func(descriptors map[string]string, cost int64) client.Decision {
			d, err := c.Check(t.Context(), client.Request{Domain: "api", Descriptors: descriptors,
				Cost: cost})
			if err != nil || !d.Unreachable {
				t.Fatalf("%+v, %v", d, err)
			}
			return d
		}
		one, other := map[string]string{"a": "1"}, map[string]string{"a": `1"b"`}
		if !ask(one, 4).Allowed || !ask(other, 3).Allowed {
			t.Error("a burst was denied")
		}
		if d := ask(one, 2); d.Allowed || d.RetryAfter != 200*time.Millisecond {
			t.Errorf("%+v, want to retry after 200 ms", d)
		}
		if d := ask(one, 5); d.Allowed || d.RetryAfter != 0 {
			t.Errorf("more than the burst: %+v", d)
		}
		time.Sleep(200 * time.Millisecond)
		if d := ask(one, 2); !d.Allowed {
			t.Errorf("at its retry time: %+v", d)
		}
		closed(t, c)
	})
}

// Nobody knows when a node answers again, so a denial of the local limit tells at most a minute.
func TestLocalLimitTellsAMinute(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := client.New(failing{newFake(0), status.Error(codes.Unavailable, "no connection")},
			client.Options{OnUnreachable: client.Local, Local: client.LocalLimit{Rate: 0.001, Burst: 1}})
		for _, want := range []time.Duration{0, time.Minute} {
			if d, err := c.Check(t.Context(), request(1)); err != nil || d.RetryAfter != want {
				t.Errorf("%+v, %v, want %v", d, err, want)
			}
		}
		closed(t, c)
	})
}

// The keys with a limiter of their own are bounded. The others share one until some are forgotten.
func TestLocalKeysAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := client.New(failing{newFake(0), status.Error(codes.Unavailable, "no connection")},
			client.Options{OnUnreachable: client.Local,
				Local: client.LocalLimit{Rate: 1, Burst: 1}})
		admitted := 0
		all := func(round string) int {
			admitted = 0
			for n := range client.MaxLocalKeys + 10 {
				d, err := c.Check(t.Context(), client.Request{Domain: "api",
					Descriptors: map[string]string{round: fmt.Sprint(n)}})
				suite.Must(t, err)
				if d.Allowed {
					admitted++
				}
			}
			return admitted
		}
		if n := all("first"); n != client.MaxLocalKeys+1 {
			t.Errorf("%d admitted, want one of each key and one of the others", n)
		}
		time.Sleep(time.Second) // all bursts are whole
		if n := all("second"); n != client.MaxLocalKeys+1 {
			t.Errorf("%d admitted after a second", n)
		}
		closed(t, c)
	})
}

func TestBadChoices(t *testing.T) {
	for says, o := range map[string]client.Options{
		"needs a rate above 0": {OnUnreachable: client.Local},
		"a burst of 0":         {OnUnreachable: client.Local, Local: client.LocalLimit{Rate: 1}},
		"OnUnreachable(7)":     {OnUnreachable: 7},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	c := client.New(newFake(10), client.Options{OnUnreachable: client.Allow})
	for says, q := range map[string]client.Request{
		"cost: is -1":                {Domain: "api", Cost: -1},
		"domain: is not UTF-8":       {Domain: "\xff"},
		"request_id: is not UTF-8":   {Domain: "api", ID: "\xff"},
		`descriptors."a": is not`:    {Domain: "api", Descriptors: map[string]string{"a": "\xff"}},
		"send hashes of long descri": {Domain: "api", ID: strings.Repeat("a", 16<<10)},
	} {
		if _, err := c.Check(t.Context(), q); status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	closed(t, c)
}
