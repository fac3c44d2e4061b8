package caller

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	limit    = oracle.Limit{Limit: 10, Window: time.Second, Algorithm: "fixed_window"}
	question = Question{Domain: "api", Descriptors: map[string]string{"account": "42"}, Cost: 3}
)

// serve answers every request over HTTP with a body.
func serve(t *testing.T, body string) (*httptest.Server, *Caller) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body == "hang up" {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s, newCaller(t, s.Listener.Addr().String(), "")
}

func newCaller(t *testing.T, httpAddress, grpcAddress string) *Caller {
	t.Helper()
	c, err := New(Node{Region: "us", Name: "n1", HTTP: httpAddress, Admin: httpAddress,
		GRPC: grpcAddress})
	suite.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// first is the Life of a node that was started once.
func first() (uint64, bool) { return 1, true }

// TestAsk: how each answer over HTTP counts for the judge.
func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name, body string
		outcome    oracle.Outcome
		want       string // cell, share, degraded, sequence
	}{
		{"admitted", `{"allowed":true,"cell":7,"at":"2026-01-01T00:00:07.000001Z","share":6,"entitlement":5,"sequence":9}`, oracle.Admitted, "7 6 false 9"},
		{"admitted by a node that is degraded",
			`{"allowed":true,"cell":7,"at":"2026-01-01T00:00:07Z","share":5,"sequence":9,"degraded":true}`, oracle.Admitted, "7 5 true 9"},
		{"denied", `{"allowed":false,"cell":7,"at":"2026-01-01T00:00:07Z","share":6,"sequence":9}`,
			oracle.Denied, "7 6 false 9"},
		{"admitted without a store", `{"allowed":true,"sequence":9}`, oracle.Unknown,
			"0 0 false 9"},
		{"no decision", `{"at":"2026-01-01T00:00:07Z"}`, oracle.Unknown, "0 0 false 0"},
		{"no time", `{"allowed":true,"at":"noon"}`, oracle.Unknown, "0 0 false 0"},
		{"no JSON", `<html>`, oracle.Unknown, "0 0 false 0"},
		{"nothing", `hang up`, oracle.Unknown, "0 0 false 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, node := serve(t, c.body)
			a, sent := node.Ask(t.Context(), question, "account", limit, first)
			if got := fmt.Sprint(a.Cell, a.Share, a.Degraded, a.Sequence); !sent ||
				a.Outcome != c.outcome || got != c.want {
				t.Errorf("%v of %s, sent %v; want %v of %s", a.Outcome, got, sent, c.outcome,
					c.want)
			}
			if a.Node != "n1#1" || a.Region != "us" || a.Bucket != "account" || a.Cost != 3 ||
				a.Sent.After(a.Seen) {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestDenialWithoutAStore: it gets the time at which it was sent, also if the node says what time
// it remembers.
func TestDenialWithoutAStore(t *testing.T) {
	for _, body := range []string{`{"allowed":false,"sequence":9}`,
		`{"allowed":false,"from_memory":true,"cell":7,"at":"2026-01-01T00:00:07Z","sequence":9}`} {
		_, node := serve(t, body)
		a, sent := node.Ask(t.Context(), question, "account", limit, first)
		if !sent || a.Outcome != oracle.Denied || a.At != a.Sent.UnixMicro() ||
			a.Cell != limit.CellOf(a.At) {
			t.Errorf("%s: %+v, sent %v", body, a, sent)
		}
	}
}

// TestNeverSent: if nobody accepts the connection there is nothing to judge.
func TestNeverSent(t *testing.T) {
	s, node := serve(t, "")
	s.Close()
	if _, sent := node.Ask(t.Context(), question, "account", limit, first); sent {
		t.Error("sent over HTTP")
	}
	grpcOnly := newCaller(t, s.Listener.Addr().String(), s.Listener.Addr().String())
	q := question
	q.GRPC = true
	if _, sent := grpcOnly.Ask(t.Context(), q, "account", limit, first); sent {
		t.Error("sent over gRPC")
	}
	if _, sent := node.Ask(t.Context(), q, "account", limit, first); sent {
		t.Error("sent over gRPC, of which no address is known")
	}
}

// TestLives: an answer has the name of the only start of the node that can have given it, or else a
// unique name.
func TestLives(t *testing.T) {
	_, node := serve(t, `{"allowed":true,"cell":7,"at":"2026-01-01T00:00:07Z","sequence":9}`)
	for _, c := range []struct {
		name   string
		lives  [2]uint64
		known  [2]bool
		itself bool
	}{
		{"one", [2]uint64{2, 2}, [2]bool{true, true}, false},
		{"another since", [2]uint64{2, 3}, [2]bool{true, true}, true},
		{"not known at first", [2]uint64{2, 2}, [2]bool{false, true}, true},
		{"not known any more", [2]uint64{2, 2}, [2]bool{true, false}, true},
	} {
		asked := -1
		a, _ := node.Ask(t.Context(), question, "account", limit, func() (uint64, bool) {
			asked++
			return c.lives[asked], c.known[asked]
		})
		if !strings.HasPrefix(a.Node, "n1#2") || (a.Node != "n1#2") != c.itself {
			t.Errorf("%s: the answer is of %s", c.name, a.Node)
		}
	}
	if n := node.Dials(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

// rpcNode answers over gRPC.
type rpcNode struct {
	quotadv1.UnimplementedQuotaServiceServer
	fail bool
}

func (n rpcNode) Check(_ context.Context, q *quotadv1.CheckRequest) (*quotadv1.CheckResponse,
	error) {
	if n.fail {
		return nil, status.Error(codes.Unavailable, "ending")
	}
	return &quotadv1.CheckResponse{Decision: &quotadv1.Decision{Allowed: true, Cell: 7,
		AtUs: 7_000_001, Share: 6, Entitlement: q.GetCost(), Sequence: 9}}, nil
}

// TestAskGRPC: as TestAsk; a call that failed after it was sent has an unknown outcome.
func TestAskGRPC(t *testing.T) {
	for _, fail := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		suite.Must(t, err)
		s := grpc.NewServer()
		quotadv1.RegisterQuotaServiceServer(s, rpcNode{fail: fail})
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		q := question
		q.GRPC = true
		a, sent := newCaller(t, "", l.Addr().String()).Ask(t.Context(), q, "account", limit, first)
		switch {
		case !sent:
			t.Error("it was not sent")
		case fail && a.Outcome != oracle.Unknown:
			t.Errorf("a call that failed: %+v", a)
		case !fail && (a.Outcome != oracle.Admitted || a.At != 7_000_001 || a.Cell != 7 ||
			a.Share != 6 || a.Entitlement != 3 || a.Sequence != 9):
			t.Errorf("%+v", a)
		}
		s.Stop()
		suite.Must(t, <-served)
	}
}

// TestStatus: what operators ask for, and the errors they get.
func TestStatus(t *testing.T) {
	_, node := serve(t, `{"region":"us","node":"n1","ready":true,"journal":{"incarnation":4},"peers":[{"region":"eu","heard":true,"degraded":true}]}`)
	s, err := node.Status(t.Context())
	if err != nil || s.Region != "us" || s.Journal.Incarnation != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	for regions, want := range map[int]string{1: "region eu is out of touch",
		2: "1 of 2 other regions are known"} {
		if err := s.InTouch(regions); err == nil || err.Error() != want {
			t.Errorf("in touch with %d: %v, want %s", regions, err, want)
		}
	}
	s.Peers[0].Degraded = false
	suite.Must(t, s.InTouch(1))
	_, wrong := serve(t, "<html>")
	if _, err := wrong.Status(t.Context()); err == nil || !strings.HasPrefix(err.Error(),
		"read the status of quotad us/n1: ") {
		t.Error(err)
	}
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	_, err = newCaller(t, refusing.Listener.Addr().String(), "").Status(t.Context())
	if err == nil || err.Error() !=
		"GET /v1/status of quotad us/n1: Not Found: 404 page not found" {
		t.Error(err)
	}
}
