package wire

import (
	"context"
	_ "embed" // openapi.yaml
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/quotad/quotad/region"
)

// Probed is what probes ask a node.
type Probed interface {
	// Ready returns why the node should get no requests, nil if it should.
	Ready() error
	Recovering() []region.Recovering
}

// Life is what the servers of a node share: whether they are ready, and that they end together. Safe
// for concurrent use.
type Life struct {
	node   Probed
	secret bool
	ending context.Context
	end    context.CancelFunc
}

// NewLife returns the life of servers of a node. Probes are not told why the node is not ready, and
// what it recovers, if that is secret.
func NewLife(node Probed, secret bool) *Life {
	l := &Life{node: node, secret: secret}
	l.ending, l.end = context.WithCancel(context.Background())
	return l
}

// ErrEnding is why a node is not ready whose servers end.
var ErrEnding = errors.New("the server is shutting down")

// Ready returns why the node should not get requests, nil if it should.
func (l *Life) Ready() error {
	if l.ending.Err() != nil {
		return ErrEnding
	}
	return l.node.Ready()
}

// End makes the servers not ready, and ends what would otherwise not end: watchers, and streams.
func (l *Life) End() { l.end() }

// Ending returns a context that is over when calls should end.
func (l *Life) Ending() context.Context { return l.ending }

// openAPI describes the paths of both listeners. A test holds it against the handlers.
//
//go:embed openapi.yaml
var openAPI []byte

// describe answers with the description of the HTTP paths of both listeners.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI) // if the write fails, the caller has gone
}

func livez(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// readyz says why the node is not ready, or which limits it cannot decide whole, only where everybody
// may know: others see it in the status.
func (l *Life) readyz(w http.ResponseWriter, _ *http.Request) {
	if !l.probe(w, http.StatusServiceUnavailable, "ok\n") || l.secret {
		return
	}
	for _, r := range l.node.Recovering() {
		_, _ = fmt.Fprintf(w, "%d keys of %s are recovering since %s\n", r.Buckets, r.Limit, r.Since.UTC().Format(time.RFC3339))
	}
}

// Healthcheck answers by the rule of readyz as envoyproxy/ratelimit does: 200 with OK, or 500.
func (l *Life) Healthcheck(w http.ResponseWriter, _ *http.Request) {
	l.probe(w, http.StatusInternalServerError, "OK")
}

// probe writes whether the node is ready, and reports it: the text if it is, else the code, with the
// reason where everybody may know it.
func (l *Life) probe(w http.ResponseWriter, code int, text string) bool {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	err := l.Ready()
	if err == nil {
		_, _ = io.WriteString(w, text)
		return true
	}
	why := err.Error()
	if l.secret {
		why = "see its status, on the admin listener"
	}
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, "not ready: %s\n", why)
	return false
}
