package fronts

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/base/invalid"
)

// Quiet is a log that writes nothing.
func Quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// shown are the headers by which tests compare answers.
var shown = []string{"Allow", "Content-Type", "Retry-After", "X-RateLimit-Limit",
	"X-RateLimit-Remaining", "X-RateLimit-Reset"}

// Exchange sends one request to a handler, and writes the answer as a person would read it.
func Exchange(h http.Handler, method, target, contentType, body string) string {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var out strings.Builder
	fmt.Fprintln(&out, w.Code)
	for _, name := range shown {
		for _, value := range w.Header().Values(name) {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	out.WriteString(strings.TrimSuffix(w.Body.String(), "\n"))
	return out.String()
}

// A request, and the lines of types of content as Exchange shows them.
const (
	Request     = `{"domain":"api","descriptors":{"account":"42"},"cost":2}`
	ProblemType = "Content-Type: application/problem+json\n"
	JSONType    = "Content-Type: application/json\n"
)

// Compare holds an answer against the one that is wanted.
func Compare(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Problem is a problem as Exchange shows it. header stands before its content type, members after
// its detail.
func Problem(code int, header, detail, members string) string {
	return fmt.Sprintf(`%d
%s%s{"type":"about:blank","title":%q,"status":%d,"detail":"%s"%s}`, code, header, ProblemType, http.StatusText(code), code, detail, members)
}

// Call returns the status, the headers and the members of an answer.
func Call(t *testing.T, method, url, body string) (int, http.Header, map[string]any) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	suite.Must(t, err)
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/json")
	}
	r, err := http.DefaultClient.Do(q)
	suite.Must(t, err)
	defer r.Body.Close()
	var members map[string]any
	suite.Must(t, json.NewDecoder(r.Body).Decode(&members))
	return r.StatusCode, r.Header, members
}

// Equal holds a message against the one that is wanted.
func Equal(t *testing.T, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// RawCodec sends raw bytes, like a client that checks nothing.
type RawCodec struct{ encoding.CodecV2 }

// Name implements encoding.CodecV2.
func (RawCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (RawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (RawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }

// WantLenient checks that a body was refused with a field error, or that encoding/json reads it,
// too.
func WantLenient(t *testing.T, body []byte, err error, lenient any) {
	t.Helper()
	var field *invalid.Field
	if err != nil && !errors.As(err, &field) {
		t.Fatalf("%q is refused with %T: %v", body, err, err)
	}
	if err != nil {
		return
	}
	if err := json.Unmarshal(body, lenient); err != nil {
		t.Fatalf("%q is accepted here and not by encoding/json: %v", body, err)
	}
}
