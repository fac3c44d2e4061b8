package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/suite"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/region/base/link"
)

// cutting serves region us on loopback with a handler of cuts; nil: it makes none.
func cutting(t *testing.T, as *TLS, handle CutHandler) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(Handlers{Exchange: named("us"), Cut: handle}, as)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

// askCut asks the node of us at an address for a cut, with a client of its own.
func askCut(t *testing.T, as *TLS, address string, c Cut) (CutAnswer, error) {
	t.Helper()
	client := NewClient((&net.Dialer{}).DialContext, as)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
	defer cancel()
	return client.Cut(ctx, "us", address, c)
}

var away = netip.MustParseAddr("127.0.1.11")

// TestCut: the handler gets what was asked for, with the name of the caller, in plain text and with
// certificates. The caller is told what cannot be made.
func TestCut(t *testing.T) {
	a, other := newAuthority(t, "a"), newAuthority(t, "other")
	node, operator := a.issue(us1, nil), Identity{"operators", "alice"}
	for _, test := range []struct {
		name           string
		client, server *TLS
		cut            Cut
		by             string // whom the handler was told; empty: it was not called
		code           codes.Code
		want           string
	}{
		{"in plain text", nil, nil, Cut{"eu", "both", 30 * time.Second}, "127.0.0.1:", codes.OK,
			""},
		{"one way", nil, nil, Cut{"eu", "in", MaxCut}, "127.0.0.1:", codes.OK, ""},
		{"the other way", nil, nil, Cut{"eu", "out", time.Millisecond}, "127.0.0.1:", codes.OK, ""},
		{"a heal", nil, nil, Cut{"eu", "both", 0}, "127.0.0.1:", codes.OK, ""},
		{"by an operator", a.issue(operator, nil), node, Cut{"eu", "both", time.Second},
			"operators/alice at 127.0.0.1:", codes.OK, ""},
		{"by a node", a.issue(eu1, nil), node, Cut{"eu", "both", time.Second},
			"eu/n1 at 127.0.0.1:", codes.OK, ""},
		{"by nobody known", other.issue(operator, nil, a), node, Cut{"eu", "both", time.Second}, "",
			codes.Unavailable, ""},
		{"without a certificate", nil, node, Cut{"eu", "both", time.Second}, "", codes.Unavailable,
			""},
		{"of a node of another region", a.issue(operator, nil), a.issue(ap1, nil),
			Cut{"eu", "both", time.Second}, "", codes.Unavailable,
			"the certificate is that of ap/n1, not of a node of region us"},
		{"too long", nil, nil, Cut{"eu", "both", MaxCut + time.Millisecond}, "",
			codes.InvalidArgument, "a cut of 600001 ms; give at most 600000, or 0 to heal"},
		{"for less than nothing", nil, nil, Cut{"eu", "both", -time.Second}, "",
			codes.InvalidArgument, "a cut of -1000 ms"},
		{"sideways", nil, nil, Cut{"eu", "up", time.Second}, "", codes.InvalidArgument,
			"0 is no direction of a cut; give both, in or out"},
		{"of nothing", nil, nil, Cut{"", "both", time.Second}, "", codes.InvalidArgument,
			`"" is no name of a region`},
		{"of no name", nil, nil, Cut{"e\nu", "both", time.Second}, "", codes.InvalidArgument,
			`"e\nu" is no name of a region`},
		{"of no region", nil, nil, Cut{"ue", "both", time.Second}, "127.0.0.1:",
			codes.InvalidArgument, "region: has no node"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var by atomic.Pointer[Caller]
			var got atomic.Pointer[Cut]
			s, address := cutting(t, test.server, func(caller Caller, c Cut) (CutAnswer, error) {
				by.Store(&caller)
				got.Store(&c)
				if c.Region == "ue" {
					return CutAnswer{}, errors.New("region: has no node")
				}
				return CutAnswer{[]netip.Addr{away}, 7}, nil
			})
			cut, err := askCut(t, test.client, address, test.cut)
			if status.Code(err) != test.code || err != nil && !strings.Contains(err.Error(),
				test.want) {
				t.Fatalf("%v, want %v: %s", err, test.code, test.want)
			}
			if err == nil && (len(cut.Addresses) != 1 || cut.Addresses[0] != away ||
				cut.PacketsLost != 7) {
				t.Errorf("the answer is %+v", cut)
			}
			switch {
			case test.by == "" && by.Load() != nil:
				t.Errorf("it was handed over, by %s", by.Load())
			case test.by != "" && !strings.HasPrefix(by.Load().String(), test.by):
				t.Errorf("the caller is %s, want %s", by.Load(), test.by)
			case test.by != "" && *got.Load() != test.cut:
				t.Errorf("asked for %+v, got %+v", test.cut, *got.Load())
			}
			if n := s.Refused().Cuts; n != 0 {
				t.Errorf("%d cuts are counted as refused", n)
			}
		})
	}
}

// TestCutsAreRefused: a server without a handler refuses cuts, and so does one whose handler makes
// none. Both count them and tell the caller how to have cuts made.
func TestCutsAreRefused(t *testing.T) {
	none := func(Caller, Cut) (CutAnswer,
		error) {
		return CutAnswer{}, fmt.Errorf("here: %w", ErrNoCuts)
	}
	for name, handle := range map[string]CutHandler{"no handler": nil, "none are made": none} {
		t.Run(name, func(t *testing.T) {
			s, address := cutting(t, nil, handle)
			for range 2 {
				_, err := askCut(t, nil, address, Cut{"eu", "both", time.Second})
				if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(),
					"start it with chaos: true") ||
					!strings.Contains(err.Error(), "cut the node of us at "+address+
						" off from eu") {
					t.Error(err)
				}
			}
			if n := s.Refused().Cuts; n != 2 {
				t.Errorf("%d refused cuts are counted, want 2", n)
			}
		})
	}
}

// TestLoadCaller: an operator's identity is the one that its certificate names.
func TestLoadCaller(t *testing.T) {
	a := newAuthority(t, "a")
	operator := Identity{"operators", "alice"}
	files := a.write(t.TempDir(), of(operator), a)
	loaded, err := LoadCaller(files)
	if err != nil || loaded.self != operator {
		t.Fatal(loaded, err)
	}
	for name, wrong := range map[string]Files{
		"issue one with: quotad keys cert": a.write(t.TempDir(), template(), a),
		"give a certificate and its own key": {Cert: files.Cert,
			Key: a.write(t.TempDir(), of(operator), a).Key, CA: files.CA},
		"read the certificate": {Cert: files.Cert + "x", Key: files.Key, CA: files.CA},
	} {
		if _, err := LoadCaller(wrong); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// TestCutExpires: a cut asked for over the wire loses what the caller's region sends, and ends by
// itself.
func TestCutExpires(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		gate := link.NewGate()
		l, err := p.net.Host("us-1").Listen(port)
		if err != nil {
			t.Fatal(err)
		}
		cut := func(_ Caller, c Cut) (CutAnswer, error) {
			ips := []netip.Addr{p.net.Host(c.Region).IP()}
			gate.Cut(ips, link.Both, c.For)
			return CutAnswer{Addresses: ips}, nil
		}
		s := NewServer(Handlers{Exchange: named("us-1"), Cut: cut}, nil)
		served := make(chan error, 1)
		go func() { served <- s.Serve(gate.Listener(l)) }()
		t.Cleanup(func() {
			s.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
		p.client.SetNodes("us", []string{at("us-1")})
		p.mustCall("us-1")
		operator := NewClient(p.net.Host("operator").DialContext, nil)
		defer operator.Close()
		begin := time.Now()
		if _, err := operator.Cut(t.Context(), "us", at("us-1"),
			Cut{"eu", "both", 30 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.call(20 * time.Second); err == nil {
			t.Error("a call was answered through the cut")
		}
		p.recovers()
		if took := time.Since(begin); took < 30*time.Second || took > 35*time.Second {
			t.Errorf("the cut of 30s ended after %v", took)
		}
		synctest.Wait()
	})
}

// FuzzCut: no request is passed on that would not end, or whose region cannot be a region's name.
func FuzzCut(f *testing.F) {
	f.Add("eu", int32(1), int64(30_000))
	f.Add("eu", int32(3), int64(0))
	f.Add("\x00", int32(4), int64(1)<<62)
	f.Fuzz(func(t *testing.T, region string, direction int32, ms int64) {
		cut := func(_ Caller, c Cut) (CutAnswer, error) {
			if c.For < 0 || c.For > MaxCut || c.Direction == "" || !nodeName.MatchString(c.Region) {
				t.Errorf("%q, %d, %d is a cut of %+v", region, direction, ms, c)
			}
			return CutAnswer{}, nil
		}
		s := &Server{handlers: Handlers{Cut: cut}}
		_, err := s.Cut(t.Context(), &peerv1.CutRequest{Region: region,
			Direction: peerv1.CutDirection(direction), ForMs: ms})
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Error(err)
		}
	})
}
