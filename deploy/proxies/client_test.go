//go:build proxies

package proxies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// client is a client of a proxy, at an address of its own in 127.0.0.0/8.
type client struct {
	*stage
	http *http.Client
}

// answerTimeout bounds a request of a client.
const answerTimeout = 10 * time.Second

func (s *stage) client(ip string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &client{s, &http.Client{Transport: transport, Timeout: answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is what a client sees.
type answer struct {
	code   int
	header http.Header
	body   string
}

// decided reports whether quotad decided: there are its headers then.
func (a answer) decided() bool { return a.header.Get("RateLimit") != "" }

func (a answer) String() string { return fmt.Sprintf("%d %v\n%s", a.code, a.header, a.body) }

// postBody is the body of every POST.
const postBody = "name=somebody"

// ask sends one request. headers are names and values in turn.
func (c *client) ask(ctx context.Context, method, path string, headers ...string) (answer, error) {
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader(postBody)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.address+path, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, 1<<20))
	return answer{got.StatusCode, got.Header, string(text)}, err
}

// get sends one request, which must be answered.
func (c *client) get(t *testing.T, method, path string, headers ...string) answer {
	t.Helper()
	a, err := c.ask(t.Context(), method, path, headers...)
	suite.Must(t, err)
	return a
}

// decide sends a request until quotad decides it: on a busy machine it may be too slow for the
// recipe's timeouts, and a proxy notices late that a node is back.
func (c *client) decide(t *testing.T, method, path string, headers ...string) (a answer) {
	t.Helper()
	suite.Eventually(t, "quotad decides "+method+" "+path, func() bool {
		a = c.get(t, method, path, headers...)
		return a.decided()
	})
	return a
}

// used returns how many units of a limit are used for a key.
func (s *stage) used(t *testing.T, limit, key string) int64 {
	t.Helper()
	q, err := json.Marshal(map[string]any{"domain": "web",
		"descriptors": map[string]string{limit: key}})
	suite.Must(t, err)
	got, err := http.Post("http://"+s.node.HTTP+"/v1/peek", "application/json", bytes.NewReader(q))
	suite.Must(t, err)
	defer got.Body.Close()
	var d struct {
		Limit      string `json:"limit"`
		LimitUnits int64  `json:"limit_units"`
		Remaining  *int64 `json:"remaining"`
		Allowed    bool   `json:"allowed"`
	}
	suite.Must(t, json.NewDecoder(got.Body).Decode(&d))
	if d.Limit != limit || d.Remaining == nil {
		t.Fatalf("limit %s of %s: %d %+v", limit, key, got.StatusCode, d)
	}
	used := d.LimitUnits - *d.Remaining
	if d.Allowed {
		used-- // what a check would charge
	}
	return used
}
