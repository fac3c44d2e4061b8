package store

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestWhatIsNoRedis: a port with something else behind it, TLS where there is none, and no TLS
// where there is, are told apart from a Redis that is down.
func TestWhatIsNoRedis(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secret := httptest.NewUnstartedServer(http.NotFoundHandler())
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	secret.StartTLS()
	defer secret.Close()
	greets := listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n") })
	hangsUp := listen(t, func(net.Conn) {})
	plain := strings.TrimPrefix(fixtures.Process(t).URL, "redis://")
	address := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	for name, c := range map[string]struct{ url, want string }{
		"a web server":           {"redis://" + address(web), "what answers there is no Redis"},
		"an SSH server":          {"redis://" + greets, "what answers there is no Redis"},
		"who hangs up":           {"redis://" + hangsUp, "rediss:// if the Redis wants TLS"},
		"TLS to a plain Redis":   {"rediss://" + plain, "rediss:// if the Redis wants TLS, and only then"},
		"nobody at all":          {"redis://127.0.0.1:1", "check that it runs"},
		"a web server, with TLS": {"rediss://" + address(secret), "what answers there is no Redis"},
		"no TLS to a TLS server": {"redis://" + address(secret), "TLS"},
	} {
		o := Options{URL: c.url, Timeout: suite.Patience}
		if c.url == "rediss://"+plain { // a Redis says nothing to what it cannot read
			o.Timeout = time.Second
		}
		if strings.HasPrefix(c.url, "rediss") {
			o.TLS = &tls.Config{InsecureSkipVerify: true} // whose certificate it is does not matter here
		}
		s, err := Connect(o)
		suite.Must(t, err)
		_, err = s.Open(t.Context(), first)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		suite.Must(t, s.Close())
	}
}

// listen serves each connection with a function and closes it.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}
