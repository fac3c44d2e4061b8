package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"google.golang.org/grpc/encoding"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// hostile is a name that would write its own line, in red, and from right to left.
const hostile = "eu\n\x1b[31mok\tall is well\u202e\u009b"

// TestHostileNames: a terminal shows whatever a node tells about others quoted and cut.
func TestHostileNames(t *testing.T) {
	long := hostile + strings.Repeat("x", 10_000)
	answers := map[string]any{
		"/v1/status": map[string]any{"region": hostile, "node": long, "version": hostile,
			"epoch": hostile, "not_ready": hostile,
			"store": map[string]any{"kind": hostile, "address": hostile,
				"data": []string{hostile}, "out_of_reach": []string{hostile},
				"maxmemory_policy": hostile},
			"peers":   []map[string]any{{"region": hostile}, {"region": long, "heard": true}},
			"members": []string{hostile, long}, "mates": []string{hostile},
			"counters": map[string]int{hostile: 1}},
		"/v1/check": map[string]any{"allowed": true, "reason": hostile, "limit": hostile,
			"algorithm": hostile, "node": hostile, "region": long,
			"shadowed": []string{hostile}, "receipt": hostile},
		"/v1/buckets/m": map[string]any{"limit": hostile, "algorithm": hostile,
			"rights": []map[string]any{{"region": hostile}, {"region": long}}},
		"/v1/settle": map[string]any{"settled": []map[string]any{{"limit": hostile,
			"reason": long}}},
		"/v1/cut":  map[string]any{"region": hostile, "for_ms": 1, "addresses": []string{hostile}},
		"/v1/peek": map[string]any{"status": 400, "detail": long},
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/peek" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
	}))
	defer node.Close()
	for _, args := range [][]string{{"status"}, {"check", "--domain", "api", "--receipt"},
		{"check", "--domain", "api", "--peek"},
		{"explain", "--ledger", "m", "--domain", "api"}, {"settle", "r", "0"}, {"cut", "eu", "--for",
			"1s"}} {
		var out, errs strings.Builder
		run(t.Context(), append(args, "--addr", node.URL), &out, &errs)
		text := out.String() + errs.String()
		if strings.Contains(text, "\nok") || strings.Contains(text, "\n\x1b") || len(text) > 6000 ||
			!strings.Contains(text, "eu") {
			t.Errorf("%v shows %d bytes: %.3000q", args, len(text), text)
		}
		for _, c := range text {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Errorf("%v shows %q", args, c)
				break
			}
		}
	}
}

// TestFilesThatAreNone: every command that reads a file refuses at once what is not a file, and
// says what to do.
func TestFilesThatAreNone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	node := []string{"serve", "--check", "--region", "us", "--data-dir", t.TempDir(),
		"--redis-embedded", "--policy"}
	for _, args := range [][]string{
		{"limits", "validate", pipe}, {"limits", "list", pipe}, {"limits", "bound", pipe},
		{"serve", "--check", "--config", pipe},
		append(node, pipe), append(node, "x", "--gossip-keys", "file:"+pipe),
		{"chaos", "run", pipe},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), args, &out, &errs); code != exit.BadUsage ||
			!strings.Contains(errs.String(), "is a pipe: not a regular file; ") {
			t.Errorf("%v exits %d: %s", args, code, errs.String())
		}
	}
}

// TestNamesWriteNoEscapeCodes: names of members and regions, and reasons, reach the terminal
// without escape codes, whatever a node says: in a table, in JSON and in an error.
func TestNamesWriteNoEscapeCodes(t *testing.T) {
	const evil = "\u009b31m\\u001b[2J\u202e"
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/check") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"detail": "` + evil + `"}`))
			return
		}
		_, _ = w.Write([]byte(`{"region": "us", "node": "` + evil +
			`", "ready": false, "not_ready": "` + evil + `", "members": ["us/n1", "eu/` +
			evil + `"], "mates": ["` + evil + `"], "peers": [{"region": "` + evil +
			`"}], "counters": {"` + evil + `": 1}, "store": {"address": "` + evil + `"}}`))
	}))
	defer node.Close()
	for _, args := range [][]string{
		{"status"}, {"status", "-o", "json"}, {"check", "--domain", "api", "account=1"},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append(args, "--addr", node.URL), &out, &errs)
		text := out.String() + errs.String()
		if !strings.Contains(text, "31m") || text != show.Visible(text) {
			t.Errorf("%q writes %q", args, text)
		}
	}
}

// TestNothingIsDecompressed: no package of a node makes gRPC servers take compressed messages. What
// a caller may hold is counted as it comes, and a compressed message would be many times as large
// afterwards.
func TestNothingIsDecompressed(t *testing.T) {
	for _, name := range []string{"gzip", "deflate", "snappy", "zstd"} {
		if encoding.GetCompressor(name) != nil {
			t.Errorf("a package registers %s: see go list -deps ./cmd/quotad", name)
		}
	}
}
