package door

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// dial opens a connection that stays open until the end of the test.
func (h *house) dial(host string) net.Conn {
	h.T.Helper()
	c, err := h.net.Host(host).DialContext(h.T.Context(), "tcp", h.at)
	if err != nil {
		h.T.Fatal(err)
	}
	return c
}

// TestAttackConnections: connections beyond their bounds are closed at once, and there is room
// again when others end.
func TestAttackConnections(t *testing.T) {
	in(t, Limits{Connections: 5, PerAddress: 3}, func(t *testing.T, h *house) {
		var all []net.Conn
		for i := range 10 {
			c := h.dial([]string{"a", "a", "a", "a", "b", "b", "b", "b", "c", "c"}[i])
			defer c.Close()
			all = append(all, c)
		}
		rest(time.Second)
		var open string
		for _, c := range all {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_, err := io.Copy(io.Discard, c)
			open += map[bool]string{true: "+", false: "-"}[errors.Is(err, errTimeout(err))]
		}
		if open != "+++-++----" {
			t.Errorf("connections are open as %s, want +++-++----", open)
		}
		for reason, want := range map[string]float64{tooMany: 4, tooManyOfAddress: 1,
			stalledConnection: 0} {
			if got := h.door.metric("quotad_connections_refused_total", reason); got != want {
				t.Errorf("%v refused because of %s, want %v", got, reason, want)
			}
		}
		_ = all[0].Close()
		_ = all[1].Close()
		rest(time.Second)
		if got := h.door.metric("quotad_connections", ""); got != 3 {
			t.Errorf("%v are open, want 3", got)
		}
		if _, err := healthv1.NewHealthClient(h.client("a")).Check(t.Context(),
			&healthv1.HealthCheckRequest{}); err != nil {
			t.Errorf("there is room again, and a client is answered %v", err)
		}
	})
}

// errTimeout returns err if it is a timeout, else another error.
func errTimeout(err error) error {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return err
	}
	return errors.New("not a timeout")
}

// TestPanics: a panic ends its call, is counted, and is logged once a minute.
func TestPanics(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		client := healthv1.NewHealthClient(h.client("client"))
		h.check = func() (*healthv1.HealthCheckResponse, error) { panic("boom\nforged") }
		call := func(n int) {
			for range n {
				if _, err := client.Check(t.Context(),
					&healthv1.HealthCheckRequest{}); status.Code(err) != codes.Internal ||
					strings.Contains(err.Error(), "boom") {
					t.Errorf("answered %v, want Internal without the cause", err)
				}
			}
		}
		call(100)
		if lines := strings.Count(h.log.String(), "\n"); lines != 1 ||
			!strings.Contains(h.log.String(), `panic="boom\nforged"`) {
			t.Errorf("100 panics are %d lines: %.500s", lines, h.log.String())
		}
		rest(logEvery)
		call(1)
		if lines := strings.Count(h.log.String(), "\n"); lines != 2 ||
			!strings.Contains(h.log.String(), "unlogged=99") {
			t.Errorf("after a minute there are %d lines, want 2, of which one says that 99 were not logged", lines)
		}
		if len(h.panics) != 101 || h.panics[0] != "grpc/Check" {
			t.Errorf("%d panics are counted, the first in %q", len(h.panics), h.panics[0])
		}
	})
}

// FuzzDecode: decode accepts what protobuf accepts, with the same result. What it refuses has a
// field and a problem.
func FuzzDecode(f *testing.F) {
	whole, err := proto.Marshal(&structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("b")}})}})
	suite.Must(f, err)
	for _, seed := range [][]byte{nil, whole, whole[:len(whole)-1], {0x0a, 0x03, 0x0a, 0x01, 0xff},
		{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, {0x0b, 0x0c},
		protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType),
			strings.Repeat("\x0a\x00", countedFrom))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, want := &structpb.Struct{}, &structpb.Struct{}
		bad, err := decode(raw, got, 5000), proto.Unmarshal(raw, want)
		switch {
		case bad == nil && err != nil:
			t.Errorf("decoded as %v, and is none: %v", got, err)
		case bad == nil && !proto.Equal(got, want):
			t.Errorf("decoded as %v, want %v", got, want)
		case bad != nil && err == nil && len(raw) <= countedFrom:
			t.Errorf("refused (%v), and is %v", bad, want)
		case bad != nil && (bad.Name == "" || bad.Problem == ""):
			t.Errorf("refused without a reason: %+v", *bad)
		}
	})
}

// TestSeldom: the first event passes at once, then one a minute with the number of those held back.
// A clock that steps back holds back nothing.
func TestSeldom(t *testing.T) {
	var s Seldom
	start := time.Unix(1000, 0)
	var got []string
	for _, after := range []time.Duration{0, time.Second, 59 * time.Second, time.Minute,
		61 * time.Second, 2 * time.Minute, -time.Hour} {
		passed, due := s.Due(start.Add(after))
		got = append(got, fmt.Sprintf("%d %v", passed, due))
	}
	if want := "[0 true 0 false 0 false 2 true 0 false 1 true 0 true]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestDoorsOfOneNode: the doors of several ports have their own series in one node's metrics.
func TestDoorsOfOneNode(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, port := range []string{"grpc", "http", "peer"} {
		suite.Must(t, r.Register(New(port, roomy)))
	}
	families, err := r.Gather()
	if err != nil || len(families) != 5 || len(families[0].GetMetric()) != 3 {
		t.Errorf("gathered %v, %v", families, err)
	}
}

// TestOneNetworkIsOneCaller: an IPv6 network of 64 bits, of which one machine may have every address,
// is one caller, and has the connections of one.
func TestOneNetworkIsOneCaller(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:5": "192.0.2.1",
		"[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64", "2001:db8:1:2:ffff::1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:5": "fe80::/64", "server:5": "server", "": "",
	} {
		if got := HostOf(address); got != want {
			t.Errorf("%s is of %s, want %s", address, got, want)
		}
	}
	of := func(ip string) netip.Addr {
		return addressOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 1)))
	}
	if of("2001:db8:1:2::1") != of("2001:db8:1:2:9::") || of("2001:db8:1:2::1") == of("2001:db8:1:3::1") ||
		of("192.0.2.1") == of("192.0.2.2") || of("::ffff:192.0.2.1") != of("192.0.2.1") {
		t.Error("connections are counted by other addresses")
	}
}
