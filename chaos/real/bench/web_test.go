package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWebCalls: calls over HTTP count denials, and what is no decision is an error.
func TestWebCalls(t *testing.T) {
	const yes, no = `{"allowed":true,"reason":"within_limit"}`, `{"allowed":false,"reason":"over_limit"}`
	const batch = "/v1/check-batch"
	for _, c := range []struct {
		name   string
		keys   int
		path   string
		code   int
		answer string
		denied int64
		failed bool
	}{
		{"admitted", 1, "/v1/check", 200, yes, 0, false},
		{"denied", 1, "/v1/check", 429, no, 1, false},
		{"not decided", 1, "/v1/check", 503, no, 0, true},
		{"a batch", 3, batch, 200, `{"decisions":[` + no + `,` + yes + `,` + no + `]}`, 2, false},
		{"a refused batch", 3, batch, 429, no, 0, true},
		{"too few decisions", 3, batch, 200, `{"decisions":[` + yes + `]}`, 0, true},
		{"no JSON", 3, batch, 200, "ok", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != c.path || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("called %s with %v", r.URL, r.Header)
				}
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.answer + "\n"))
			}))
			defer s.Close()
			w := newWeb(strings.TrimPrefix(s.URL, "http://"), 1)
			defer w.client.CloseIdleConnections()
			denied, err := w.prepare(make([]int, c.keys))(t.Context())
			if (err != nil) != c.failed || err == nil && denied != c.denied {
				t.Errorf("%d denied, %v; want %d", denied, err, c.denied)
			}
		})
	}
}

func TestParseMallocs(t *testing.T) {
	const page = "# TYPE go_memstats_mallocs_total counter\ngo_memstats_mallocs_total 1.5e+06\nup 1\n"
	if got, err := parseMallocs(page); err != nil || *got != 1.5e6 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "up 1\n", "go_memstats_mallocs_total many\n"} {
		if got, err := parseMallocs(bad); err == nil {
			t.Errorf("%q tells %v", bad, *got)
		}
	}
}
