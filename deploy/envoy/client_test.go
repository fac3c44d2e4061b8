//go:build envoy

package envoy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// client is a client of an Envoy, at an address of its own in 127.0.0.0/8.
type client struct {
	http    *http.Client
	address string
}

func (p *proxy) client(t *testing.T, ip string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{&http.Client{Transport: transport, Timeout: suite.Patience}, p.address}
}

// answer is what a client sees.
type answer struct {
	code   int
	header http.Header
	body   string
	took   time.Duration
}

// decided reports whether quotad decided: there are its headers then.
func (a answer) decided() bool { return a.header.Get("RateLimit") != "" }

func (a answer) String() string { return fmt.Sprintf("%d %v\n%s", a.code, a.header, a.body) }

// ask sends one request. headers are names and values in turn.
func (c *client) ask(ctx context.Context, method, path string, headers ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.address, nil)
	if err != nil {
		return answer{}, err
	}
	r.URL.Opaque = path // as it is
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	begun := time.Now()
	got, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, 1<<20))
	return answer{got.StatusCode, got.Header, string(text), time.Since(begun)}, err
}

// get sends one request, which must be answered.
func (c *client) get(t *testing.T, method, path string, headers ...string) answer {
	t.Helper()
	a, err := c.ask(t.Context(), method, path, headers...)
	suite.Must(t, err)
	return a
}

// used returns how many units of a limit are used, for the entries of a descriptor.
func used(t *testing.T, n *process.Node, limit string, entries ...string) (units int) {
	t.Helper()
	type entry struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	var all []entry
	for i := 0; i+1 < len(entries); i += 2 {
		all = append(all, entry{entries[i], entries[i+1]})
	}
	q, err := json.Marshal(map[string]any{"domain": "web",
		"descriptors": []any{map[string]any{"entries": all, "hits_addend": 0}}})
	suite.Must(t, err)
	got, err := http.Post("http://"+n.HTTP+"/json", "application/json", strings.NewReader(string(q)))
	suite.Must(t, err)
	defer got.Body.Close()
	var d struct {
		Statuses []struct {
			CurrentLimit struct {
				Name            string
				RequestsPerUnit int
			}
			LimitRemaining int
		}
	}
	suite.Must(t, json.NewDecoder(got.Body).Decode(&d))
	if len(d.Statuses) != 1 || d.Statuses[0].CurrentLimit.Name != limit {
		t.Fatalf("limit %s of %v: %d %+v", limit, entries, got.StatusCode, d)
	}
	return d.Statuses[0].CurrentLimit.RequestsPerUnit - d.Statuses[0].LimitRemaining
}

// problem returns what is wrong with an answer as one to a client that is denied.
func (a answer) problem() error {
	var p struct {
		Type, Title string
		Status      int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		return err
	}
	if a.code != http.StatusTooManyRequests || p.Status != a.code ||
		!strings.HasSuffix(p.Type, "#quota-exceeded") || p.Title == "" ||
		a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Retry-After") == "" {
		return errors.New(a.String())
	}
	return nil
}
