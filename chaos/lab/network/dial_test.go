package network

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestDialTakesARoundTrip(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		n.SetDelay("b", "a", 70*ms)
		l, err := b.Listen(80)
		suite.Must(t, err)
		for _, address := range []string{"b:80", b.IP().String() + ":80", l.Addr().String()} {
			wantTook(t, 110*ms, func() {
				c, err := a.DialContext(context.Background(), "tcp", address)
				suite.Must(t, err)
				if got := c.RemoteAddr().(*net.TCPAddr).String(); got !=
					l.Addr().(*net.TCPAddr).String() {
					t.Errorf("remote address %s, want %s", got, l.Addr())
				}
				s, err := l.Accept()
				if err != nil || s.RemoteAddr().String() != c.LocalAddr().String() {
					t.Errorf("accepted %v, %v; want the connection from %v", s.RemoteAddr(), err,
						c.LocalAddr())
				}
			})
		}
	})
}

func TestDialHangsDuringACut(t *testing.T) {
	for _, dir := range [][2]string{{"a", "b"}, {"b", "a"}} {
		t.Run(dir[0]+" to "+dir[1], func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n, a, b := twoHosts(t)
				if _, err := b.Listen(80); err != nil {
					t.Fatal(err)
				}
				n.Cut(dir[0], dir[1], 10*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				wantTook(t, 2*time.Second, func() {
					_, err := a.DialContext(ctx, "tcp", "b:80")
					var ne net.Error
					if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &ne) ||
						!ne.Timeout() {
						t.Errorf("dial: %v", err)
					}
				})
				// A waiting dial gets through after the cut: the lost segment is sent again, and
				// takes its one-way delay from then on.
				want := 8*time.Second + 40*ms
				if dir[0] == "a" {
					want += 40 * ms // then the answer travels back
				}
				wantTook(t, want, func() {
					if _, err := a.DialContext(t.Context(), "tcp", "b:80"); err != nil {
						t.Errorf("dial across the heal: %v", err)
					}
				})
			})
		})
	}
}

func TestAbandonedDialEndsTheAcceptedConnection(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, a, b := twoHosts(t)
		l, err := b.Listen(80)
		suite.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms) // the listener has it after 40 ms
		defer cancel()
		if _, err := a.DialContext(ctx, "tcp", "b:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("dial: %v", err)
		}
		s, err := l.Accept()
		suite.Must(t, err)
		if _, err := s.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want EOF", err)
		}
	})
}

func TestDialErrors(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, a, b := twoHosts(t)
		l, err := b.Listen(0)
		suite.Must(t, err)
		full := l.Addr().String()
		for range backlogLimit {
			if _, err := a.DialContext(t.Context(), "tcp", full); err != nil {
				t.Fatal(err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, tc := range []struct {
			name, network, address string
			ctx                    context.Context
			is                     func(error) bool
		}{
			{"refused", "tcp", "b:81", t.Context(),
				func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
			{"backlog full", "tcp", full, t.Context(),
				func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
			{"no such name", "tcp", "c:80", t.Context(), func(err error) bool {
				var e *net.DNSError
				return errors.As(err, &e) && e.IsNotFound
			}},
			{"no such address", "tcp", "10.77.9.9:80", t.Context(), func(err error) bool {
				var e *net.DNSError
				return errors.As(err, &e)
			}},
			{"no port", "tcp", "b", t.Context(), func(err error) bool {
				var e *net.AddrError
				return errors.As(err, &e)
			}},
			{"bad port", "tcp", "b:65536", t.Context(), func(err error) bool {
				var e *net.AddrError
				return errors.As(err, &e)
			}},
			{"bad network", "unix", "b:80", t.Context(), func(err error) bool {
				var e net.UnknownNetworkError
				return errors.As(err, &e)
			}},
			{"ended context", "tcp", "b:80", ended,
				func(err error) bool { return errors.Is(err, context.Canceled) }},
		} {
			_, err := a.DialContext(tc.ctx, tc.network, tc.address)
			var op *net.OpError
			if err == nil || !tc.is(err) || !errors.As(err, &op) {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
	})
}
