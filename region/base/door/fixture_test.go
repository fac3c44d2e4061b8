package door

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// someBounds are small enough to be reached in a test.
var someBounds = Bounds{Streams: 64, Message: 1 << 20, Records: 1000, MinPing: time.Second,
	Alive: keepalive.ServerParameters{MaxConnectionIdle: 2 * time.Minute, Time: time.Minute,
		Timeout: 20 * time.Second}}

// service is a health service whose answers a test sets.
type service struct {
	*health.Server
	check func() (*healthv1.HealthCheckResponse, error) // nil: SERVING
}

func (s *service) Check(ctx context.Context,
	q *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	if s.check != nil {
		return s.check()
	}
	return s.Server.Check(ctx, q)
}

var errCrowded = status.Error(codes.Unavailable, "crowded")

// house is a server behind a door, on a network in memory.
type house struct {
	*testing.T
	net    *network.Network
	door   *Door
	at     string
	log    bytes.Buffer
	panics []string
	*service
	lasts lastingService
	crowd *Crowd // of calls to the health service
}

// in runs a test of a server behind a door, in virtual time.
func in(t *testing.T, l Limits, f func(t *testing.T, h *house)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		h := &house{T: t, net: network.New(), door: New("grpc", l),
			service: &service{Server: health.NewServer()}}
		defer h.net.Close()
		host := h.net.Host("server")
		listener, err := host.Listen(8081)
		suite.Must(t, err)
		h.at = listener.Addr().String()
		panics := NewPanics(slog.New(slog.NewTextHandler(&h.log, nil)), "grpc/",
			func(where string) { h.panics = append(h.panics, where) })
		calls := NewCalls(someBounds, panics, nil)
		calls.Last(quotaPath)
		h.crowd = NewCrowd(errCrowded, func() {})
		calls.Crowd(h.crowd, checkPath)
		s := grpc.NewServer(calls.Options()...)
		rlqsv3.RegisterRateLimitQuotaServiceServer(calls.Of(s), &h.lasts)
		healthv1.RegisterHealthServer(calls.Of(s), h.service)
		reflection.Register(calls.Of(s))
		var serving sync.WaitGroup
		serving.Go(func() { _ = s.Serve(h.door.Listener(listener)) })
		defer serving.Wait()
		defer s.Stop()
		f(t, h)
	})
}

// client returns a well-behaved client on a host.
func (h *house) client(host string) *grpc.ClientConn {
	h.T.Helper()
	c, err := grpc.NewClient("passthrough:///"+h.at,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) {
			return h.net.Host(host).DialContext(ctx, "tcp", a)
		}))
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = c.Close() })
	return c
}

// rude is a connection that sends its own frames, and notes what comes back.
type rude struct {
	*testing.T
	net.Conn
	*http2.Framer
	start time.Time

	mu    sync.Mutex
	ended map[uint32]string // how each stream ended: the gRPC status or the code of the reset
	after map[uint32]time.Duration
	gone  time.Duration // until the end of the connection; 0: it has not ended
	read  sync.WaitGroup
}

// rude connects from a host. Answers wait once the given number of bytes is unread.
func (h *house) rude(host string, window uint32) *rude {
	h.T.Helper()
	conn, err := h.net.Host(host).DialContext(h.T.Context(), "tcp", h.at)
	if err != nil {
		h.T.Fatal(err)
	}
	r := &rude{T: h.T, Conn: conn, Framer: http2.NewFramer(conn, conn), start: time.Now(),
		ended: map[uint32]string{}, after: map[uint32]time.Duration{}}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		h.T.Fatal(err)
	}
	if err := r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize,
		Val: window}); err != nil {
		h.T.Fatal(err)
	}
	r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.read.Go(r.listen)
	return r
}

// done ends the connection.
func (r *rude) done() {
	_ = r.Conn.Close()
	r.read.Wait()
}

func (r *rude) listen() {
	for {
		f, err := r.ReadFrame()
		r.mu.Lock()
		if err != nil {
			r.gone = max(time.Since(r.start), 1)
			r.mu.Unlock()
			return
		}
		id := f.Header().StreamID
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" {
					r.end(id, "status "+field.Value)
				}
			}
		case *http2.RSTStreamFrame:
			r.end(id, f.ErrCode.String())
		}
		r.mu.Unlock()
	}
}

func (r *rude) end(id uint32, how string) {
	if r.ended[id] == "" {
		r.ended[id], r.after[id] = how, time.Since(r.start)
	}
}

// endOf returns how and when a stream ended, and when the connection did. Zeros: not yet.
func (r *rude) endOf(id uint32) (how string, after, connection time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[id], r.after[id], r.gone
}

// headers are those of a call.
func headers(path string, more ...hpack.HeaderField) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range append([]hpack.HeaderField{{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"}, {Name: ":path", Value: path},
		{Name: ":authority", Value: "node"}, {Name: "content-type", Value: "application/grpc"}},
		more...) {
		_ = e.WriteField(f)
	}
	return b.Bytes()
}

const checkPath = "/grpc.health.v1.Health/Check"

// begin begins a call. It ignores errors, because tests check whether and how the node closed the
// connection.
func (r *rude) begin(id uint32, path string, more ...hpack.HeaderField) {
	_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers(path, more...),
		EndHeaders: true})
}

// announce announces a message of a size, and sends the first bytes of it.
func (r *rude) announce(id uint32, size, sent int) {
	b := append([]byte{0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)},
		make([]byte, sent)...)
	for len(b) > 0 {
		n := min(len(b), 16<<10)
		if err := r.WriteData(id, false, b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
}

// metric returns the sum of the door's series with a name and a label value. "" is any value.
func (d *Door) metric(name, label string) (sum float64) {
	r := prometheus.NewRegistry()
	r.MustRegister(d)
	families, err := r.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || strings.Contains(fmt.Sprint(m.GetLabel()),
				`"`+label+`"`)) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// rest lets some time pass, and then waits for everything that is due.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
