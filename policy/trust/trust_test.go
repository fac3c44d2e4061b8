package trust

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for content, want := range map[string]string{"": "", "\n": "", "qt1_a\n": "qt1_a", " qt1_a ": "qt1_a",
		"qt1_a qt1_b": "", "qt1_a\nqt1_b": "", strings.Repeat("a", maxTokenBytes+1): ""} {
		suite.Must(t, os.WriteFile(path, []byte(content), 0o600))
		got, err := Token(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.20q: %q, %v; want %q", content, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "qt1_") {
			t.Errorf("the error has the token: %v", err)
		}
	}
	if _, err := Token(path + "x"); err == nil {
		t.Error("a file that is not there has a token")
	}
}

// TestReadable: only to this machine may plain text have a secret.
func TestReadable(t *testing.T) {
	for to, want := range map[string]bool{
		"http://127.0.0.1:1":       false,
		"http://127.9.9.9:1":       false,
		"http://[::1]:1":           false,
		"http://localhost:1":       false,
		"https://node.example:1":   false,
		"http://node.example:1":    true,
		"http://192.0.2.1:1":       true,
		"http://localhost.evil:1":  true,
		"http://127.0.0.1.evil:80": true,
	} {
		u, err := url.Parse(to)
		suite.Must(t, err)
		if got := Readable(u); got != want {
			t.Errorf("%s: %v, want %v", to, got, want)
		}
	}
}
