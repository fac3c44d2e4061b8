package grpclimit_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/grpclimit"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// violations returns those of an error's QuotaFailure.
func violations(err error) (all []*errdetails.QuotaFailure_Violation) {
	for _, detail := range status.Convert(err).Details() {
		if f, ok := detail.(*errdetails.QuotaFailure); ok {
			all = append(all, f.GetViolations()...)
		}
	}
	return all
}

func TestViolations(t *testing.T) {
	d := client.Decision{Reason: quotadv1.Reason_REASON_OVER_LIMIT, Limit: "tokens-day", LimitUnits: 5000,
		Unit: "tokens", Limits: []client.LimitState{{Limit: "tokens-day", LimitUnits: 5000, Unit: "tokens"},
			{Limit: "calls", LimitUnits: 7}}}
	got := ""
	for _, v := range violations(intercept(t.Context(), &answers{d: d}, options)) {
		got += fmt.Sprintf("%s %s %s %v %d, %s; ", v.GetApiService(), v.GetQuotaMetric(), v.GetQuotaId(),
			v.GetQuotaDimensions(), v.GetQuotaValue(), v.GetDescription())
	}
	const want = "api tokens tokens-day map[method:/a.B/C] 5000, the limit is 5000 tokens; " +
		"api requests calls map[method:/a.B/C] 7, the limit is 7 units; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDimensionsAreBounded: a denial does not tell so much that a client refuses it, and no
// dimensions if that is asked for.
func TestDimensionsAreBounded(t *testing.T) {
	d := client.Decision{Reason: quotadv1.Reason_REASON_OVER_LIMIT, Limit: "a"}
	for range 11 {
		d.Limits = append(d.Limits, client.LimitState{Limit: strings.Repeat("a", 63)})
	}
	long := options
	long.Key = func(context.Context, grpclimit.Call) (grpclimit.Charge, bool) {
		return grpclimit.Charge{Descriptors: map[string]string{"a": strings.Repeat("x", 256),
			"b": strings.Repeat("y", 256)}}, true
	}
	none := options
	none.NoDimensions = true
	for name, o := range map[string]grpclimit.Options{"too long": long, "not asked for": none} {
		all := violations(intercept(t.Context(), &answers{d: d}, o))
		if len(all) != 11 || all[0].GetQuotaDimensions() != nil || all[0].GetQuotaId() == "" {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// first denies the first calls, and admits all others.
type first struct {
	denied client.Decision
	many   int
	calls  int
}

func (f *first) Check(context.Context, client.Request) (client.Decision, error) {
	if f.calls++; f.calls <= f.many {
		return f.denied, nil
	}
	return client.Decision{Allowed: true}, nil
}

// retries is a plain retry policy. By itself it waits for an hour.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3,
	"initialBackoff": "3600s", "maxBackoff": "3600s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// TestPushback: a client of grpc-go with a plain retry policy waits once for what it is told, in
// place of its own time, and is served. Told -1 it does not try again.
func TestPushback(t *testing.T) {
	for _, c := range []struct {
		name  string
		retry time.Duration
		code  codes.Code
		sent  string
		calls int
		waits time.Duration
	}{
		{"soon", 1500*time.Millisecond + 1, codes.OK, "", 2, 1501 * time.Millisecond},
		{"the longest", 5 * time.Second, codes.OK, "", 2, 5 * time.Second},
		{"longer", 5*time.Second + 1, codes.ResourceExhausted, "-1", 1, 0},
		{"never", 0, codes.ResourceExhausted, "-1", 1, 0},
	} {
		for _, streams := range []bool{false, true} {
			bubble.Test(t, func(t *testing.T) {
				f := &first{many: 1, denied: client.Decision{Limit: "a", RetryAfter: c.retry,
					Reason: quotadv1.Reason_REASON_OVER_LIMIT}}
				rpc, begun := inMemory(t, f), time.Now()
				var trailer metadata.MD
				err := checked(t, rpc, streams, &trailer)
				if status.Code(err) != c.code || f.calls != c.calls || time.Since(begun) != c.waits ||
					strings.Join(trailer["grpc-retry-pushback-ms"], ",") != c.sent {
					t.Errorf("%s, streams %v: %v after %d calls and %v, trailer %v", c.name, streams, err,
						f.calls, time.Since(begun), trailer)
				}
			})
		}
	}
}

// TestNoPushback: when nobody knows whether another attempt helps, the client's own policy decides.
func TestNoPushback(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := &first{many: 1, denied: client.Decision{Limit: "a",
			Reason: quotadv1.Reason_REASON_STORE_FAILURE}}
		begun := time.Now()
		err := checked(t, inMemory(t, f), false, &metadata.MD{})
		if err != nil || f.calls != 2 || time.Since(begun) < time.Minute {
			t.Errorf("%v after %d calls and %v", err, f.calls, time.Since(begun))
		}
	})
}

// inMemory returns a client with a retry policy of a server of health checks behind the interceptors.
func inMemory(t *testing.T, c grpclimit.Checker) grpc_health_v1.HealthClient {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	s := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(c, options)),
		grpc.StreamInterceptor(grpclimit.Stream(c, options)))
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	conn, err := grpc.NewClient("passthrough:///server", grpc.WithDefaultServiceConfig(retries),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return l.DialContext(ctx)
		}))
	suite.Must(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop()
		serving.Wait()
	})
	return grpc_health_v1.NewHealthClient(conn)
}

// checked makes a call, or opens a stream, and returns how that ended.
func checked(t *testing.T, rpc grpc_health_v1.HealthClient, streams bool, trailer *metadata.MD) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if !streams {
		_, err := rpc.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(trailer))
		return err
	}
	stream, err := rpc.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	suite.Must(t, err)
	if _, err = stream.Recv(); err != nil {
		*trailer = stream.Trailer()
	}
	return err
}
