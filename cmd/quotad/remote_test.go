package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering is a node's API that gives one answer to everything.
func answering(t *testing.T, code int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestExitCodesOfCheckAndStatus(t *testing.T) {
	check := []string{"check", "--domain", "api", "account=42"}
	status := []string{"status"}
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		body   string
		exit   int
		stdout string
		stderr string
	}{
		{"allowed", check, 200, `{"allowed":true,"reason":"within_limit","limit":"a","limit_units":1,"remaining":0,"region":"us","node":"n1"}`,
			exitOK, "limit       a: 1 unit over all regions\n", ""},
		{"denied", check, 429, `{"allowed":false,"reason":"over_limit","limit":"a","limit_units":2,"retry_after_ms":1500.25,"region":"us","node":"n1"}`,
			exitDenied, "retry in    1.5s\n", ""},
		{"degraded", check, 200, `{"allowed":true,"reason":"within_limit","degraded":true,"shadowed":["a","b"]}`,
			exitOK, "shadow      a, b would have denied\n", ""},
		{"denied without a store", check, 503, `{"status":503,"detail":"no store","allowed":false,"reason":"store_failure"}`,
			exitDenied, "denied (store_failure)", ""},
		{"denied peek", append(check, "--peek"), 200, `{"allowed":false,"reason":"never"}`, exitDenied, "denied (never)", ""},
		{"denied as JSON", append(check, "-o", "json"), 429, `{"allowed":false,"reason":"over_limit"}`,
			exitDenied, "{\n  \"allowed\": false,\n  \"reason\": \"over_limit\"\n}\n", ""},
		{"undecided", check, 503, `{"detail":"it ended"}`, exitUnreachable, "", "the node answered 503: it ended; try again"},
		{"refused", check, 400, `{"detail":"cost: is odd"}`, exitUsage, "", "cost: is odd; correct the request"},
		{"fault", check, 500, `{"detail":"a fault"}`, exitError, "", "the node answered 500: a fault"},
		{"something else", check, 404, `<html>`, exitError, "", "answered 404 Not Found, which is not quotad's way: check that --addr"},
		{"ready", status, 200, `{"region":"us","node":"n1","ready":true,"peers":[{"region":"eu","heard":true,"age_ms":12.7,"round_trip_ms":3}]}`,
			exitOK, "eu      ok     13ms ago     3ms\n", ""},
		{"unheard", status, 200, `{"region":"us","node":"n1","ready":true,"peers":[{"region":"eu","degraded":true}]}`,
			exitOK, "eu      degraded  never        -\n", ""},
		{"not ready", status, 200, `{"region":"us","node":"n1","ready":false,"not_ready":"no store"}`,
			exitError, "ready    no: no store\n", "node us/n1 is not ready: no store; see its log"},
		{"no status", status, 200, `[]`, exitError, "", "which is not quotad's way"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{}, test.args...)
		got := run(t.Context(), append(args, "--addr", answering(t, test.code, test.body)), &stdout, &stderr)
		if got != test.exit {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.exit)
		}
		if !strings.Contains(stdout.String(), test.stdout) || (test.stdout == "" && stdout.Len() > 0) {
			t.Errorf("%s: stdout %q, want %q", test.name, &stdout, test.stdout)
		}
		if !strings.Contains(stderr.String(), test.stderr) || (test.stderr == "" && stderr.Len() > 0) {
			t.Errorf("%s: stderr %q, want %q", test.name, &stderr, test.stderr)
		}
	}
}
