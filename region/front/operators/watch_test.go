package operators

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
)

// watched asks to watch through a transport.
func watched(ctx context.Context, t *testing.T, by http.RoundTripper,
	url, token string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/watch", nil)
	suite.Must(t, err)
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	r, err := by.RoundTrip(q)
	suite.Must(t, err)
	return r
}

// nextEvent reads the next overview of a watch. The error is io.EOF at its end.
func nextEvent(from *bufio.Reader) (o *quotadv1.OverviewResponse, err error) {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return o, err
		}
		if data, has := strings.CutPrefix(line, "data: "); has {
			o = &quotadv1.OverviewResponse{}
			return o, asjson.Unmarshal([]byte(data), o)
		}
	}
}

// watching runs f with the admin listener of a node in virtual time, over HTTP/1.1, and over HTTP/2
// with TLS, of which only dialling knows. asked counts how often the node asked the others.
func watching(t *testing.T,
	f func(t *testing.T, s *front, asked *atomic.Int64, by http.RoundTripper)) {
	pair := fixtures.NewAuthority(t).Issue(t, &x509.Certificate{})
	for _, version := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(version, func(t *testing.T) {
			node := &fronts.Node{State: region.Status{Region: "us-east", Node: "n1"}}
			var asked atomic.Int64
			node.Others = func(*quotadv1.ViewRequest) []*quotadv1.View {
				asked.Add(1)
				return nil
			}
			var o Options
			if version == "HTTP/2" {
				o.TLS = func(protocols ...string) *tls.Config {
					return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: protocols}
				}
			}
			served(t, node, o, func(t *testing.T, s *front) {
				by := &http.Transport{DialContext: s.Client.DialContext, Protocols: &http.Protocols{}}
				by.Protocols.SetHTTP1(version == "HTTP/1.1")
				if version == "HTTP/2" {
					by.Protocols.SetUnencryptedHTTP2(true)
					by.DialContext = func(ctx context.Context, network, at string) (net.Conn, error) {
						conn, err := s.Client.DialContext(ctx, network, at)
						if err != nil {
							return nil, err
						}
						return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}), nil
					}
				}
				defer by.CloseIdleConnections()
				f(t, s, &asked, by)
			})
		})
	}
}

// TestWatch: a watcher is told a new overview each second, for longer than requests and answers may
// take otherwise, and no longer than an hour.
func TestWatch(t *testing.T) {
	watching(t, func(t *testing.T, s *front, asked *atomic.Int64, by http.RoundTripper) {
		start := time.Now()
		r := watched(t.Context(), t, by, "http://"+s.AdminAt, "")
		defer r.Body.Close()
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" ||
			r.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%d %v", r.StatusCode, r.Header)
		}
		from := bufio.NewReader(r.Body)
		events := 0
		var last time.Time
		for {
			o, err := nextEvent(from)
			if err == io.EOF {
				break
			}
			suite.Must(t, err)
			if !o.At.AsTime().After(last) || o.Node != "n1" {
				t.Fatalf("event %d: %v", events, o)
			}
			last = o.At.AsTime()
			events++
		}
		if took := time.Since(start); took != maxWatch || events < 3590 || asked.Load() != int64(events) {
			t.Errorf("%d events in %v, and the others were asked %d times", events, took, asked.Load())
		}
	})
}

// TestWatchersAreBounded: one more than the most is refused, and gets the place of one that goes.
// All are told the same overviews.
func TestWatchersAreBounded(t *testing.T) {
	watching(t, func(t *testing.T, s *front, asked *atomic.Int64, by http.RoundTripper) {
		at := "http://" + s.AdminAt
		all := make([]*http.Response, maxWatchers)
		for i := range all {
			all[i] = watched(t.Context(), t, by, at, "")
			defer all[i].Body.Close()
		}
		more := watched(t.Context(), t, by, at, "")
		text, err := io.ReadAll(more.Body)
		if err != nil || more.StatusCode != 503 || more.Header.Get("Retry-After") != "5" ||
			!strings.Contains(string(text), "16 callers watch this node already") {
			t.Errorf("one more is answered %d %s, %v", more.StatusCode, text, err)
		}
		for _, r := range all {
			from := bufio.NewReader(r.Body)
			for range 2 {
				if _, err := nextEvent(from); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := asked.Load(); n > 3 {
			t.Errorf("%d watchers had the others asked %d times in a second", len(all), n)
		}
		all[0].Body.Close()
		time.Sleep(3 * time.Second) // of virtual time: the node notices at the latest when it writes
		again := watched(t.Context(), t, by, at, "")
		defer again.Body.Close()
		if again.StatusCode != 200 {
			t.Errorf("after one went: %d", again.StatusCode)
		}
	})
}

// TestShutdownEndsWatches: a node that ends waits for no watcher.
func TestShutdownEndsWatches(t *testing.T) {
	watching(t, func(t *testing.T, s *front, _ *atomic.Int64, by http.RoundTripper) {
		r := watched(t.Context(), t, by, "http://"+s.AdminAt, "")
		defer r.Body.Close()
		from := bufio.NewReader(r.Body)
		if _, err := nextEvent(from); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		for {
			if _, err := nextEvent(from); err != nil {
				break
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// TestStalledWatchersAreCutOff: a caller that reads nothing keeps its place no longer than an event
// may take.
func TestStalledWatchersAreCutOff(t *testing.T) {
	node := &fronts.Node{State: region.Status{Region: "us-east", Node: strings.Repeat("n", 32<<10)}}
	served(t, node, Options{}, func(t *testing.T, s *front) {
		conn, err := s.Client.DialContext(t.Context(), "tcp", s.AdminAt)
		suite.Must(t, err)
		defer conn.Close()
		fmt.Fprint(conn, "GET /v1/watch HTTP/1.1\r\nHost: node\r\n\r\n")
		synctest.Wait()
		if len(s.watchers) != 1 {
			t.Fatalf("%d watchers, want 1", len(s.watchers))
		}
		time.Sleep(10 * time.Minute) // of virtual time
		if len(s.watchers) != 0 {
			t.Error("a caller that reads nothing still has its place")
		}
	})
}

// TestWhoMayNoMoreWatch is cut off: the roles file may change while a watch lasts.
func TestWhoMayNoMoreWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roles.yaml")
	token, hashed := roles.NewToken()
	may := func(role string) {
		text := fmt.Sprintf("callers:\n  - {name: me, roles: [%s], tokens: [%q]}\n", role, hashed)
		suite.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	may("read")
	book, err := roles.OpenBook(path, func(error) {})
	suite.Must(t, err)
	s := newServer(t, &fronts.Node{}, Options{Roles: book,
		Port: wire.Port{Guard: roles.NewGuard("admin", book, fronts.Quiet())}})
	web := httptest.NewServer(s.http.Handler)
	defer web.Close()
	r := watched(t.Context(), t, http.DefaultTransport, web.URL, token)
	defer r.Body.Close()
	from := bufio.NewReader(r.Body)
	if _, err := nextEvent(from); err != nil {
		t.Fatal(err)
	}
	may("check")
	following, stop := context.WithCancel(t.Context())
	defer stop()
	go book.Follow(following)
	for err == nil {
		_, err = nextEvent(from)
	}
	if err != io.EOF {
		t.Error(err)
	}
	if r := watched(t.Context(), t, http.DefaultTransport, web.URL, token); r.StatusCode != 403 {
		t.Errorf("it may watch again: %d", r.StatusCode)
	}
}

// TestSilentRegionsDoNotQueueWatchers: while the others take a second to answer, all watchers are
// told what one question brought.
func TestSilentRegionsDoNotQueueWatchers(t *testing.T) {
	node := &fronts.Node{}
	node.Others = func(*quotadv1.ViewRequest) []*quotadv1.View {
		time.Sleep(askTimeout)
		return nil
	}
	served(t, node, Options{}, func(t *testing.T, s *front) {
		by := &http.Transport{DialContext: s.Client.DialContext}
		defer by.CloseIdleConnections()
		var all sync.WaitGroup
		for i := range maxWatchers {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 60 * time.Millisecond)
				r := watched(t.Context(), t, by, "http://"+s.AdminAt, "")
				defer r.Body.Close()
				from := bufio.NewReader(r.Body)
				start := time.Now()
				for range 10 {
					if _, err := nextEvent(from); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(start); took > 25*time.Second {
					t.Errorf("ten events took %v", took)
				}
			})
		}
		all.Wait()
		if err := s.Shutdown(t.Context()); err != nil { // which waits for the handlers
			t.Error(err)
		}
	})
}

// TestWatchesAreCompressed for who takes that: each event can be read when it comes, and an event
// that resembles the one before is small.
func TestWatchesAreCompressed(t *testing.T) {
	node := overseen(t)
	node.State.Node = strings.Repeat("n1 of a long name ", 256)
	served(t, node, Options{}, func(t *testing.T, s *front) {
		by := &http.Transport{DialContext: s.Client.DialContext, DisableCompression: true}
		defer by.CloseIdleConnections()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+s.AdminAt+"/v1/watch", nil)
		suite.Must(t, err)
		q.Header.Set("Accept-Encoding", "gzip")
		r, err := by.RoundTrip(q)
		suite.Must(t, err)
		defer r.Body.Close()
		wire := &wireReader{from: r.Body}
		unpacked, err := gzip.NewReader(wire)
		if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
			t.Fatal(err, r.Header)
		}
		from := bufio.NewReader(unpacked)
		start := time.Now()
		sent := 0
		for range 10 {
			sent = wire.bytes
			o, err := nextEvent(from)
			if err != nil || len(o.Hottest) != 1 {
				t.Fatalf("%+v, %v", o, err)
			}
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("ten events took %v", took)
		}
		if last := wire.bytes - sent; last > 1000 {
			t.Errorf("an event has %d bytes", last)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadAll(from); err != nil {
			t.Errorf("the end of the stream is not that of its compression: %v", err)
		}
	})
}

// wireReader counts what is read.
type wireReader struct {
	from  io.Reader
	bytes int
}

func (c *wireReader) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.bytes += n
	return n, err
}

// TestWatchersSeeTheirDomains: a caller who may name some domains watches the buckets and limits of
// these alone.
func TestWatchersSeeTheirDomains(t *testing.T) {
	callers, node := fronts.NewRoles(t), overseen(t)
	s := newServer(t, node, Options{Port: wire.Port{Guard: callers.Guard("admin")}})
	web := httptest.NewServer(s.http.Handler)
	defer web.Close()
	for who, want := range map[roles.Role]int{"read": 1, "tenant": 0} { // of domain web
		r := watched(t.Context(), t, http.DefaultTransport, web.URL, callers.Tokens[who])
		o, err := nextEvent(bufio.NewReader(r.Body))
		if err != nil || len(o.Hottest) != want || len(o.Nodes) != 2 || len(o.Nodes[0].Limits) != want {
			t.Errorf("%s: %+v, %v", who, o, err)
		}
		r.Body.Close()
	}
}
