package callers

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

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

// dialed serves a server's gRPC in memory and connects to it, both until the end of the test.
func dialed(t testing.TB, s *Server) *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.ServeGRPC(l); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///node",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn,
			error) {
			return l.DialContext(ctx)
		}))
	suite.Must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return conn
}

func quota(t testing.TB, n Node) quotadv1.QuotaServiceClient {
	t.Helper()
	return quotadv1.NewQuotaServiceClient(dialed(t, newServer(t, n, fronts.Quiet())))
}

func TestGRPCDecisions(t *testing.T) {
	wantAllowed := &quotadv1.Decision{Allowed: true, Reason: quotadv1.Reason_REASON_WITHIN_LIMIT,
		Limit: "account-minute", Algorithm: "fixed_window",
		LimitUnits: 1000, Remaining: 57,
		ResetAfter: durationpb.New(10*time.Second + 250*time.Microsecond), Cell: 29394720,
		AtUs: 1763683189999750, Node: "n1", Region: "us-east", Entitlement: 400, Share: 425,
		Sequence: 7, Shadowed: []string{"new-limit"}, Window: durationpb.New(time.Minute)}
	wantDenied := &quotadv1.Decision{Reason: quotadv1.Reason_REASON_OVER_LIMIT,
		Limit: "account-minute", Algorithm: "fixed_window",
		LimitUnits: 1000, ResetAfter: durationpb.New(10*time.Second + 250*time.Microsecond),
		RetryAfter: durationpb.New(10*time.Second + 250*time.Microsecond),
		Cell:       29394720, AtUs: 1763683189999750, Node: "n1", Region: "us-east",
		Entitlement: 400, Share: 425, Sequence: 7, Window: durationpb.New(time.Minute), Unit: "tokens"}
	wantNever := proto.CloneOf(wantDenied)
	wantNever.Reason, wantNever.RetryAfter = quotadv1.Reason_REASON_NEVER, nil
	wantQueued := proto.CloneOf(wantAllowed)
	wantQueued.Algorithm, wantQueued.Delay = "leaky_bucket", durationpb.New(1500*time.Microsecond)
	wantRepeated := proto.CloneOf(wantAllowed)
	wantRepeated.Repeated, wantRepeated.Receipt = true, fronts.Receipt
	wantFromMemory := proto.CloneOf(wantAllowed)
	wantFromMemory.FromMemory = true
	for _, c := range []struct {
		name     string
		decision admit.Decision
		want     *quotadv1.Decision
	}{
		{"allowed", fronts.With(fronts.Allowed(), func(d *admit.Decision) { d.Shadowed = []string{"new-limit"} }),
			wantAllowed},
		{"denied", fronts.With(fronts.Denied(), func(d *admit.Decision) { d.Unit = "tokens" }), wantDenied},
		{"never", fronts.With(fronts.Denied(),
			func(d *admit.Decision) { d.Reason, d.RetryAfter, d.Unit = admit.Never, -1, "tokens" }), wantNever},
		{"a turn in a queue", fronts.With(fronts.Allowed(), func(d *admit.Decision) {
			d.Algorithm, d.Delay, d.Shadowed = algorithms.LeakyBucket, 1500*time.Microsecond,
				[]string{"new-limit"}
		}), wantQueued},
		{"repeated, with a receipt", fronts.With(fronts.Allowed(), func(d *admit.Decision) {
			d.Repeated, d.Receipt, d.Shadowed = true, fronts.Receipt, []string{"new-limit"}
		}), wantRepeated},
		{"from memory", fronts.With(fronts.Allowed(), func(d *admit.Decision) {
			d.FromMemory, d.Shadowed = true, []string{"new-limit"}
		}), wantFromMemory},
		{"store failure, deny", fronts.Undecided(admit.StoreFailure),
			&quotadv1.Decision{Reason: quotadv1.Reason_REASON_STORE_FAILURE,
				Limit: "account-minute", Algorithm: "fixed_window", LimitUnits: 1000, Node: "n1",
				Region: "us-east", Entitlement: 400, Degraded: true, Sequence: 8,
				Window: durationpb.New(time.Minute)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := quota(t, &fronts.Node{Decision: c.decision})
			checked, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"})
			suite.Must(t, err)
			fronts.Equal(t, checked.Decision, c.want)
			peeked, err := client.Peek(t.Context(), &quotadv1.PeekRequest{Domain: "api"})
			suite.Must(t, err)
			fronts.Equal(t, peeked.Decision, c.want)
		})
	}
}

// TestEveryReasonHasAMessage: every reason of a node has its own value in the API, and none is
// unspecified.
func TestEveryReasonHasAMessage(t *testing.T) {
	all := []admit.Reason{admit.WithinLimit, admit.NoLimit, admit.OverLimit,
		admit.ExceedsRegionCapacity, admit.Never, admit.Recovering,
		admit.QueueFull, admit.StoreFailure, admit.StoreFailureLocal, admit.StoreFailureAllowed,
		admit.InvalidRequest, admit.Denied}
	for _, r := range all {
		want := "REASON_" + strings.ToUpper(string(r))
		if got := wire.DecisionMessage(admit.Decision{Reason: r}).Reason.String(); got != want {
			t.Errorf("%s is %s, want %s", r, got, want)
		}
	}
	if known := len(quotadv1.Reason_name) - 1; known != len(all) || known != len(wire.Reasons) {
		t.Errorf("the proto has %d reasons, the node %d, and %d are mapped", known, len(all),
			len(wire.Reasons))
	}
}

// TestGRPCRequest: the node gets the request that was sent. An absent cost is 1, and a cost of 0
// stays 0.
func TestGRPCRequest(t *testing.T) {
	descriptors := map[string]string{"account": "42"}
	for _, c := range []struct {
		name string
		cost *int64
		want quantity.Units
	}{{"absent", nil, 1}, {"one", proto.Int64(1), 1}, {"many", proto.Int64(1 << 51), 1 << 51}} {
		t.Run(c.name, func(t *testing.T) {
			node := &fronts.Node{}
			client := quota(t, node)
			if _, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api",
				Descriptors: descriptors, Cost: c.cost}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Peek(t.Context(), &quotadv1.PeekRequest{Domain: "api",
				Descriptors: descriptors, Cost: c.cost}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api",
				Cost: c.cost, RequestId: "r1", Receipt: true}); err != nil {
				t.Fatal(err)
			}
			if named := (admit.Request{Domain: "api", Cost: c.want, ID: "r1",
				Receipt: true}); !same(node.Checked[1], named) {
				t.Errorf("the node was asked %+v, want %+v", node.Checked[1], named)
			}
			want := admit.Request{Domain: "api", Descriptors: descriptors, Cost: c.want}
			if !same(node.Checked[0], want) || !same(node.Peeked[0], want) {
				t.Errorf("the node was asked %+v and %+v, want %+v", node.Checked, node.Peeked,
					want)
			}
		})
	}
}

// wantViolations checks that an error is InvalidArgument and names the fields.
func wantViolations(t *testing.T, err error, fields ...string) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument {
		t.Fatalf("got %v, want InvalidArgument", err)
	}
	var got []string
	for _, d := range s.Details() {
		bad, ok := d.(*errdetails.BadRequest)
		if !ok {
			t.Fatalf("got detail %T", d)
		}
		for _, v := range bad.FieldViolations {
			if v.Description == "" || !strings.Contains(s.Message(), v.Field+": "+v.Description) {
				t.Errorf("message %q does not say %q: %q", s.Message(), v.Field, v.Description)
			}
			got = append(got, v.Field)
		}
	}
	if strings.Join(got, " ") != strings.Join(fields, " ") {
		t.Errorf("names fields %q, want %q", got, fields)
	}
}

func TestGRPCBadInput(t *testing.T) {
	client := quota(t, &fronts.Node{})
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		name, field string
		m           *quotadv1.CheckRequest
	}{
		{"no domain", "domain", &quotadv1.CheckRequest{}},
		{"long domain", "domain", &quotadv1.CheckRequest{Domain: long}},
		{"cost 0", "cost", &quotadv1.CheckRequest{Domain: "api", Cost: proto.Int64(0)}},
		{"cost -1", "cost", &quotadv1.CheckRequest{Domain: "api", Cost: proto.Int64(-1)}},
		{"cost 2^53+1", "cost", &quotadv1.CheckRequest{Domain: "api",
			Cost: proto.Int64(1<<53 + 1)}},
		{"cost -2^63", "cost", &quotadv1.CheckRequest{Domain: "api", Cost: proto.Int64(-1 << 63)}},
		{"no name", "descriptors", &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"": "1"}}},
		{"long value", "descriptors.account", &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"account": long}}},
		{"odd name", `descriptors["\r\n\u202e"]`, &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"\r\n\u202e": long}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client.Check(t.Context(), c.m)
			wantViolations(t, err, c.field)
			_, err = client.Peek(t.Context(), &quotadv1.PeekRequest{Domain: c.m.Domain,
				Descriptors: c.m.Descriptors, Cost: c.m.Cost})
			wantViolations(t, err, c.field)
		})
	}
	_, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api", RequestId: long})
	wantViolations(t, err, "request_id")
}

func TestGRPCErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want codes.Code
	}{
		{"the caller gave up", context.Canceled, codes.Canceled},
		{"out of time", fmt.Errorf("wait: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{"anything else", errors.New("script inspect: connection refused"), codes.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := quota(t, &fronts.Node{Err: c.err})
			_, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"})
			if status.Code(err) != c.want {
				t.Errorf("Check answers %v, want %v", err, c.want)
			}
			_, err = client.Settle(t.Context(), &quotadv1.SettleRequest{Receipt: fronts.Receipt, Used: new(int64)})
			if status.Code(err) != c.want {
				t.Errorf("Settle answers %v, want %v", err, c.want)
			}
		})
	}
}

// TestGRPCPanic: a panic in a handler is answered with Internal and logged, and the server goes on.
func TestGRPCPanic(t *testing.T) {
	var log bytes.Buffer
	node := &fronts.Node{Fault: "boom"}
	client := quotadv1.NewQuotaServiceClient(dialed(t, newServer(t, node, slog.New(slog.NewTextHandler(&log, nil)))))
	calls := map[string]func() error{
		"Check": func() error {
			_, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"})
			return err
		},
		"Settle": func() error {
			_, err := client.Settle(t.Context(), &quotadv1.SettleRequest{Receipt: fronts.Receipt, Used: new(int64)})
			return err
		},
		"CheckBatch": func() error {
			_, err := client.CheckBatch(t.Context(),
				&quotadv1.CheckBatchRequest{Requests: []*quotadv1.CheckRequest{{Domain: "api"}}})
			return err
		},
	}
	for name, call := range calls {
		log.Reset()
		err := call()
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
			t.Errorf("%s answers %v, want Internal without the cause", name, err)
		}
		if !strings.Contains(log.String(), "panic=boom") {
			t.Errorf("after %s the log has no panic: %s", name, log.String())
		}
	}
}
