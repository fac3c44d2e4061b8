package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// envoyService is an Envoy rate limit service that admits everything that is asked as it should be.
type envoyService struct {
	ratelimit.UnimplementedRateLimitServiceServer
	domain      string
	descriptors int            // in each request after the first
	pattern     *regexp.Regexp // of each descriptor, written NAME=VALUE,...
	nameless    bool           // its answers tell no limit
	calls       atomic.Int64
}

// ShouldRateLimit implements the service.
func (e *envoyService) ShouldRateLimit(_ context.Context,
	m *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	first := e.calls.Add(1) == 1
	if m.Domain != e.domain || !first && len(m.Descriptors) != e.descriptors {
		return nil, status.Errorf(codes.InvalidArgument, "%d descriptors of domain %q",
			len(m.Descriptors), m.Domain)
	}
	answer := &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}
	for _, d := range m.Descriptors {
		var text []string
		for _, e := range d.Entries {
			text = append(text, e.Key+"="+e.Value)
		}
		if its := strings.Join(text, ","); !e.pattern.MatchString(its) {
			return nil, status.Errorf(codes.InvalidArgument, "descriptor %q", its)
		}
		s := &ratelimit.RateLimitResponse_DescriptorStatus{Code: ratelimit.RateLimitResponse_OK}
		if !e.nameless {
			s.CurrentLimit = &ratelimit.RateLimitResponse_RateLimit{RequestsPerUnit: 1_000_000}
		}
		answer.Statuses = append(answer.Statuses, s)
	}
	return answer, nil
}

// start starts the service, and returns its address. The test fails if nobody asks it.
func (e *envoyService) start(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	server, ended := grpc.NewServer(), make(chan error, 1)
	ratelimit.RegisterRateLimitServiceServer(server, e)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		suite.Must(t, <-ended)
		if e.calls.Load() == 0 {
			t.Error("nobody asked the service")
		}
	})
	return l.Addr().String()
}

// ran runs the command, which must end with a code, and returns what it writes to both outputs.
func ran(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(t.Context(), args, &out, &errs); got != code {
		t.Errorf("%q ended with %d, want %d: %s%s", args, got, code, &out, &errs)
	}
	return out.String() + errs.String()
}

// shows checks that a text has lines that match.
func shows(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("no line matches %s in:\n%s", p, text)
		}
	}
}

func TestUsage(t *testing.T) {
	shows(t, ran(t, 0, "--help"), `^ +--grpc host:port `, `^ +--pid process `, `^ +--quotad path `)
	shows(t, ran(t, 2, "--algorithm", "guess"), `^--algorithm "guess": choose fixed_window, `)
	shows(t, ran(t, 2, "--flor"), `^unknown flag: --flor$`)
	shows(t, ran(t, 2, "flor"), `^unexpected argument "flor"; see --help$`)
	shows(t, ran(t, 2, "-o", "yaml"), `^-o "yaml": choose table or json$`)
	shows(t, ran(t, 1, "--quotad", "nowhere"), "nowhere")
}

// binary builds quotad once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "quotad-bench-")
	if err != nil {
		return "", err
	}
	built = dir
	return process.Build(context.Background(), dir)
})

var built string // folder of the binary; empty: it was not built

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// briefly runs the command for one short round.
func briefly(t *testing.T, code int, args string) string {
	t.Helper()
	quotad, err := binary()
	suite.Must(t, err)
	return ran(t, code, strings.Fields("--quotad "+quotad+" --duration 100ms --rounds 1 --callers 2 "+args)...)
}

// TestRuns: what quotad bench does not vary.
func TestRuns(t *testing.T) {
	suite.OneGoroutine(t)
	shows(t, briefly(t, 0, "--keys one --batch 10 --algorithm leaky_bucket"),
		`^quotad .*, go1\..*, [a-z]+/[a-z0-9]+, [0-9]+ processors?, Redis [0-9.]+$`,
		`^leaky_bucket, 2 callers on 2 connections, 1 key, 10 decisions a call, 1 round of 100ms$`,
		`^quotad  +[1-9][0-9]* .* 0 +0$`, `^lean  +[1-9][0-9]* .* 0 +0$`)
	shows(t, briefly(t, 0, "--keys one --consistency prefetch -o json"), `"version": "`,
		`"consistency": "prefetch"`, `"script_calls_per_decision": [0-9]`)
	shows(t, briefly(t, 0, "--among 10"), "^fixed_window, 2 callers on 2 connections, 10 keys, uniform, ")
}

// TestCompare: an Envoy rate limit service is measured, too, and must be asked as it wants to be.
func TestCompare(t *testing.T) {
	suite.OneGoroutine(t)
	shop := &envoyService{domain: "shop", descriptors: 3,
		pattern: regexp.MustCompile(`^path=/buy,account=k10000[0-9][0-9]$`)}
	text := briefly(t, 0, "--among 100 --batch 3 --compare "+shop.start(t)+" --compare-pid "+
		strconv.Itoa(os.Getpid())+" --compare-domain shop --compare-descriptor path=/buy,account={key} -o json")
	shows(t, text, `"compared": "127.0.0.1:[0-9]+"`, `"compared_tells_limit": true`, `"name": "compared"`,
		`"other_work_processors": [0-9]`)
	for _, once := range []string{`"times_floor": `, `"errors": 0`} {
		if n := strings.Count(text, once); n != 4 {
			t.Errorf("%s is there %d times, want 4: %s", once, n, text)
		}
	}
	nameless := &envoyService{domain: "bench", descriptors: 2, nameless: true,
		pattern: regexp.MustCompile(`^key=k1000000(/2)?$`)}
	shows(t, briefly(t, 0, "--keys one --limits 2 --compare "+nameless.start(t)),
		`^compared runs at 127.0.0.1:[0-9]+$`, `^compared  +[1-9][0-9]* .* 0 +0$`,
		`^not all processor times of compared are known: name the processes of the server, and of its Redis if it has one, with --compare-pid$`,
		`^the answers of 127.0.0.1:[0-9]+ tell no limit: if none applies to domain bench and descriptor key=\{key\} there, it decides nothing$`)
	other := &envoyService{domain: "other", descriptors: 1, pattern: regexp.MustCompile("^key=k")}
	shows(t, briefly(t, 1, "--compare "+other.start(t)),
		`ask the server at 127.0.0.1:[0-9]+ for a decision: .*1 descriptors of domain "bench"; check that --compare is`)
}
