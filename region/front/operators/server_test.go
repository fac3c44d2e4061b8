package operators

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/front/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startServer returns a server of a node with a life of its own.
func startServer(n *fronts.Node, o Options) *Server {
	return New(n, wire.NewLife(n, o.Guard != nil), fronts.Quiet(), o)
}

// newServer returns a server that is closed at the end of the test.
func newServer(t testing.TB, n *fronts.Node, o Options) *Server {
	t.Helper()
	s := startServer(n, o)
	t.Cleanup(func() { suite.Must(t, s.Close()) })
	return s
}

// front is a server, and a client of it.
type front struct {
	*Server
	*fronts.Client
}

// served runs f with a server in a bubble of virtual time.
func served(t *testing.T, node *fronts.Node, o Options, f func(t *testing.T, s *front)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := startServer(node, o)
		fronts.Serve(t, map[int]func(net.Listener) error{fronts.AdminPort: s.Serve}, s.Close,
			func(c *fronts.Client) { f(t, &front{s, c}) })
	})
}

// TestRebindingOverTheWire: a page whose name was made to lead to loopback reads nothing there.
func TestRebindingOverTheWire(t *testing.T) {
	s := newServer(t, &fronts.Node{}, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	defer serving.Wait()
	defer s.Close()
	for host, want := range map[string]int{"evil.example": http.StatusMisdirectedRequest,
		l.Addr().String(): http.StatusOK} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
			"http://"+l.Addr().String()+"/v1/status", nil)
		suite.Must(t, err)
		r.Host = host
		got, err := http.DefaultClient.Do(r)
		suite.Must(t, err)
		text, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: %d %s", host, got.StatusCode, text)
		}
	}
}
