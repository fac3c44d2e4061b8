package main

import (
	"context"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// scriptEnvoy: "envoy NAME DOMAIN DESCRIPTORS PATTERN" starts an Envoy rate limit service, and sets
// $NAME to its address and $PID to its process. It refuses requests of another domain, with another
// number of descriptors, and with descriptors that the pattern does not match. "! envoy" starts one
// whose answers tell no limit. The script fails if nobody asks it.
func scriptEnvoy(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: envoy NAME DOMAIN DESCRIPTORS PATTERN")
	}
	descriptors, err := strconv.Atoi(args[2])
	ts.Check(err)
	service := &envoyService{domain: args[1], descriptors: descriptors,
		pattern: regexp.MustCompile(args[3]), nameless: neg}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	server, ended := grpc.NewServer(), make(chan error, 1)
	ratelimit.RegisterRateLimitServiceServer(server, service)
	go func() { ended <- server.Serve(l) }()
	ts.Defer(func() {
		server.Stop()
		ts.Check(<-ended)
		if service.calls.Load() == 0 {
			ts.Fatalf("nobody asked %s", args[0])
		}
	})
	ts.Setenv(args[0], l.Addr().String())
	ts.Setenv("PID", strconv.Itoa(os.Getpid()))
}
