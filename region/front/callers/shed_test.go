package callers

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fronts"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/queue"
)

func fullBatch() *quotadv1.CheckBatchRequest {
	m := &quotadv1.CheckBatchRequest{}
	for i := range maxInBatch {
		m.Requests = append(m.Requests, &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"account": strconv.Itoa(i)}})
	}
	return m
}

// shedAfter checks that an error is that of a call refused unread, and returns when the call may
// come again.
func shedAfter(t *testing.T, err error) (retry time.Duration) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.Unavailable || !strings.HasPrefix(s.Message(), "queue_full") {
		t.Fatalf("%v", err)
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	t.Fatalf("%v does not say when to come again", err)
	return 0
}

// Batches that find the node's processors busy wait as long as their callers do, and are refused
// unread then. Single checks beside them are decided. A check that waits for the store does not count as work in processing.
func TestCallsAreShed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var hold, all sync.WaitGroup
		hold.Add(1)
		n := &fronts.Node{Decision: fronts.Allowed(), Wait: func(_ context.Context, q admit.Request) error {
			if q.Descriptors["account"] != "victim" {
				// The node is working on it.
				hold.Wait()
			}
			return nil
		}}
		s := newServer(t, n, fronts.Quiet())
		client := quotadv1.NewQuotaServiceClient(dialed(t, s))
		var refused []error
		var mu sync.Mutex
		const calls = 200
		for range calls {
			all.Go(func() {
				if _, err := client.CheckBatch(t.Context(), fullBatch()); err != nil {
					mu.Lock()
					defer mu.Unlock()
					refused = append(refused, err)
				}
			})
		}
		synctest.Wait()
		victim := &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"account": "victim"}}
		if _, err := client.Check(t.Context(), victim); err != nil {
			t.Errorf("a small call: %v", err)
		}
		time.Sleep(admit.DefaultWait)
		synctest.Wait()
		hold.Done()
		all.Wait()
		if len(refused) == 0 || len(refused) == calls {
			t.Fatalf("%d of %d refused", len(refused), calls)
		}
		for _, err := range refused {
			if retry := shedAfter(t, err); retry != shedRetry {
				t.Errorf("come again after %v", retry)
			}
		}
		n.Mu.Lock()
		checked := len(n.Checked)
		n.Mu.Unlock()
		if want := (calls-len(refused))*maxInBatch + 1; checked != want {
			t.Errorf("the node was asked %d times, want %d", checked, want)
		}
		page := metricsOf(t, s)
		if want := fmt.Sprintf("quotad_calls_shed_total{port=\"grpc\"} %d\n",
			len(refused)); !strings.Contains(page, want) {
			t.Errorf("the metrics lack %s", want)
		}
	})
}

// Batches wait for room, and are all decided if there is room in time, each caller's by turns.
func TestBatchesWaitForRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := &fronts.Node{Decision: fronts.Allowed(), Wait: func(ctx context.Context, q admit.Request) error {
			if q.Descriptors["account"] == "0" { // the first of a batch
				time.Sleep(time.Millisecond)
			}
			return nil
		}}
		client := quotadv1.NewQuotaServiceClient(dialed(t, newServer(t, n, fronts.Quiet())))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if _, err := client.CheckBatch(ctx, fullBatch()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// A batch of a caller with much work waiting waits, and is refused unread if that stays so. A single
// check of that caller is not.
func TestBusyCallers(t *testing.T) { bubble.Test(t, testBusyCallers) }

func testBusyCallers(t *testing.T) {
	n := &fronts.Node{Decision: fronts.Allowed(), BusyCallers: map[string]bool{"bufconn": true, "192.0.2.1": true}}
	client := quotadv1.NewQuotaServiceClient(dialed(t, newServer(t, n, fronts.Quiet())))
	_, err := client.CheckBatch(t.Context(), fullBatch())
	if retry := shedAfter(t, err); retry != shedRetry {
		t.Errorf("come again after %v", retry)
	}
	if _, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"}); err != nil {
		t.Error(err)
	}
	s := newServer(t, n, fronts.Quiet())
	large := fmt.Sprintf(`{"domain": "api", "descriptors": {"account": %q}}`,
		strings.Repeat("a", largeCall))
	want := `503
Content-Type: application/problem+json
Retry-After: 1
{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"` + overloaded +
		`","undecided":true,"reason":"queue_full","retry_after_ms":50}`
	for _, path := range []string{"/v1/check", "/v1/peek"} {
		if got := fronts.Exchange(s.http.Handler, http.MethodPost, path, "application/json", large); got != want {
			t.Errorf("%s:\n%s", path, got)
		}
	}
	if got := fronts.Exchange(s.http.Handler, http.MethodPost, "/v1/check", "application/json",
		`{"domain": "api"}`); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	if s.work.Take("any", "any:1", 1) == nil {
		t.Error("what was refused is still in hand")
	}
}

// While a node's processors are behind, large calls wait for others to end, and small ones do not.
// Where nothing is in hand, none waits.
func TestBehind(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, &fronts.Node{Decision: fronts.Allowed()}, fronts.Quiet())
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UnixAddr{Name: "bufconn"}})
		take := func(size int, waited time.Duration) *door.Held {
			t.Helper()
			held, err := s.admit(ctx, make([]byte, size), waited)
			if err != nil {
				shedAfter(t, err)
			}
			return held
		}
		for range 50 {
			held := take(largeCall, time.Second)
			if held == nil {
				t.Fatal("refused, though nothing is in hand")
			}
			held.Done()
		}
		small := take(largeCall-1, time.Second)
		if small == nil {
			t.Error("a small call is refused")
		}
		if take(largeCall, time.Second) != nil {
			t.Error("a large call was read")
		}
		page := metricsOf(t, s)
		if want := "quotad_calls_shed_total{port=\"grpc\"} 1\n"; !strings.Contains(page, want) {
			t.Errorf("the metrics lack %s", want)
		}
		time.AfterFunc(time.Millisecond, small.Done)
		if take(largeCall, time.Second) == nil {
			t.Error("refused, though another call ended")
		}
	})
}

// BenchmarkShed measures the refusal of an unread batch beyond what gRPC takes, if it may not wait.
func BenchmarkShed(b *testing.B) {
	n := &fronts.Node{Decision: fronts.Allowed(), BusyCallers: map[string]bool{"bufconn": true}}
	s := newServer(b, n, fronts.Quiet())
	ctx, cancel := context.WithDeadline(b.Context(), time.Now())
	defer cancel()
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.UnixAddr{Name: "bufconn"}})
	message := make([]byte, 3000)
	for b.Loop() {
		if _, err := s.admit(ctx, message, 0); err == nil {
			b.Fatal("it was let in")
		}
	}
}

// What the node has no time to decide is an error over every protocol, never a denial: UNAVAILABLE
// with the time to come again, for people and for the client's library, and 503 over HTTP. So Envoy
// does what failure_mode_deny says.
func TestOverloadIsNoDenial(t *testing.T) {
	n := &fronts.Node{Err: &queue.Overload{Retry: 7 * time.Millisecond}}
	s := newServer(t, n, fronts.Quiet())
	conn := dialed(t, s)
	own, rls := quotadv1.NewQuotaServiceClient(conn), envoy.NewRateLimitServiceClient(conn)
	asks := asking("api: account=42")
	for name, call := range map[string]func(...grpc.CallOption) error{
		"Check": func(o ...grpc.CallOption) error {
			_, err := own.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"}, o...)
			return err
		},
		"Peek": func(o ...grpc.CallOption) error {
			_, err := own.Peek(t.Context(), &quotadv1.PeekRequest{Domain: "api"}, o...)
			return err
		},
		"ShouldRateLimit": func(o ...grpc.CallOption) error {
			_, err := rls.ShouldRateLimit(t.Context(), asks, o...)
			return err
		},
	} {
		var trailer metadata.MD
		err := call(grpc.Trailer(&trailer))
		if retry := shedAfter(t, err); retry != 7*time.Millisecond ||
			!slices.Equal(trailer.Get("grpc-retry-pushback-ms"), []string{"7"}) {
			t.Errorf("%s: %v, come again after %v, %v", name, err, retry, trailer)
		}
	}
	for path, body := range map[string]string{"/v1/check": `{"domain":"api"}`, "/v1/peek": `{"domain":"api"}`,
		"/json": `{"domain":"api","descriptors":[{"entries":[{"key":"account","value":"42"}]}]}`} {
		if got := fronts.Exchange(s.http.Handler, http.MethodPost, path, "application/json", body); !strings.HasPrefix(got, "503") ||
			!strings.Contains(got, `"undecided":true,"reason":"queue_full","retry_after_ms":7`) ||
			strings.Contains(got, "allowed") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// A caller over HTTP says in Grpc-Timeout how long it waits, as over gRPC.
func TestTimeoutOf(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "5": 0, "m": 0, "100m": 100 * time.Millisecond,
		"2S": 2 * time.Second, "1M": time.Minute, "3H": time.Minute, "99999999H": time.Minute,
		"12345678u": 12345678 * time.Microsecond, "123456789u": 0, "-1S": 0, "1x": 0, "500n": 500, "0m": 0} {
		if got := timeoutOf(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestHTTPWaits: a request over HTTP waits as long as its caller says, or for httpWait.
func TestHTTPWaits(t *testing.T) { bubble.Test(t, testHTTPWaits) }

func testHTTPWaits(t *testing.T) {
	n := &fronts.Node{Decision: fronts.Allowed()}
	s := newServer(t, n, fronts.Quiet())
	for named, want := range map[string]time.Duration{"": httpWait, "200m": 200 * time.Millisecond} {
		r := httptest.NewRequest(http.MethodPost, "/v1/check", strings.NewReader(`{"domain":"api"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Grpc-Timeout", named)
		s.http.Handler.ServeHTTP(httptest.NewRecorder(), r)
		if got := n.Checked[len(n.Checked)-1].Wait; got != want {
			t.Errorf("Grpc-Timeout %q: waits %v, want %v", named, got, want)
		}
	}
}
