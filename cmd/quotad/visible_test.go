package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"eu/n1, Zürich 東京\tok\n":  "eu/n1, Zürich 東京\tok\n",
		"\x1b[2J\x1b]0;title\x07": `\x1b[2J\x1b]0;title\x07`,
		"\u009b31m":               `\x9b31m`,
		"\x9b31m":                 `\x9b31m`,
		"a\u202eb\r":              `a\u202eb\x0d`,
		"\U000e0001":              `\U000e0001`,
		"\ufffd":                  "\ufffd",
	} {
		if got := visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// FuzzVisibleJSON: what is shown of JSON means the same, as far as it is text at all, and no
// terminal acts on it.
func FuzzVisibleJSON(f *testing.F) {
	f.Add("\x1b[31m")
	f.Add("\u009b\u202e\U000e0001")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		shown := visibleJSON(string(quoted))
		if shown != visible(shown) {
			t.Errorf("%q is shown with what does not print", shown)
		}
		var again string
		if err := json.Unmarshal([]byte(shown), &again); err != nil || again != text {
			t.Errorf("%q became %q, %v", text, again, err)
		}
	})
}

// TestNamesWriteNoEscapeCodes: whatever the node at the other end says its members, regions and
// reasons are, and whether it is told in a table, as JSON or as an error.
func TestNamesWriteNoEscapeCodes(t *testing.T) {
	const evil = "\u009b31m\\u001b[2J\u202e"
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/check") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"detail": "` + evil + `"}`))
			return
		}
		_, _ = w.Write([]byte(`{"region": "us", "node": "` + evil + `", "ready": false, "not_ready": "` + evil + `", "members": ["us/n1", "eu/` +
			evil + `"], "mates": ["` + evil + `"], "peers": [{"region": "` + evil + `"}], "counters": {"` + evil + `": 1}, "store": {"address": "` + evil + `"}}`))
	}))
	defer node.Close()
	for _, args := range [][]string{
		{"status"}, {"status", "-o", "json"}, {"check", "--domain", "api", "account=1"},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append(args, "--addr", node.URL), &out, &errs)
		text := out.String() + errs.String()
		if !strings.Contains(text, "31m") || text != visible(text) {
			t.Errorf("%q writes %q", args, text)
		}
	}
}
