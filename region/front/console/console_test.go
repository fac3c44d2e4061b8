package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// get asks the handler. What it does not have is answered 404 with "none".
func get(t *testing.T, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil)
	r.URL.Path = path // as it is, also where a browser would not ask so
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "none", http.StatusNotFound)
	})).ServeHTTP(w, r)
	return w
}

func TestFilesAreServed(t *testing.T) {
	for path, kind := range map[string]string{"/": "text/html; charset=utf-8",
		"/console/app.js":            "text/javascript; charset=utf-8",
		"/console/app.css":           "text/css; charset=utf-8",
		"/console/uplot-license.txt": "text/plain; charset=utf-8"} {
		w := get(t, "GET", path)
		h := w.Result().Header
		if w.Code != 200 || h.Get("Content-Type") != kind || w.Body.Len() == 0 {
			t.Errorf("%s: %d %s, %d bytes", path, w.Code, h.Get("Content-Type"), w.Body.Len())
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
			"Content-Security-Policy": policy} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		if head := get(t, "HEAD", path); head.Code != 200 || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d with %d bytes", path, head.Code, head.Body.Len())
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") ||
		!strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("the policy lets in what is not of the node: %s", policy)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	for _, path := range []string{"/console/", "/console/none.js", "/console/../console.go",
		"/console/static/app.js", "/console//app.js", "/console/./app.js", "/console/index.html",
		"/console/app.js/", "/app.js", "/index.html", "//", "", "/console/..%2fdoc.go",
		"/console/../../../../etc/passwd", "/consoleapp.js"} {
		if w := get(t, "GET", path); w.Code != 404 || w.Body.String() != "none\n" {
			t.Errorf("%q: %d with %d bytes", path, w.Code, w.Body.Len())
		}
	}
}

// TestSameFileIsNotSentAgain: a browser that has the file is told so.
func TestSameFileIsNotSentAgain(t *testing.T) {
	tags := map[string]bool{}
	for _, coding := range []string{"", "gzip"} {
		first := get(t, "GET", "/console/app.js", "Accept-Encoding", coding)
		tag := first.Result().Header.Get("ETag")
		tags[tag] = true
		again := get(t, "GET", "/console/app.js", "Accept-Encoding", coding, "If-None-Match", tag)
		if tag == "" || again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("with %q: %d, %d bytes", coding, again.Code, again.Body.Len())
		}
		if other := get(t, "GET", "/console/app.css", "If-None-Match", tag); other.Code != 200 {
			t.Errorf("another file with this tag: %d", other.Code)
		}
	}
	if len(tags) != 2 {
		t.Errorf("the plain and the compressed form share a tag: %v", tags)
	}
}

func TestCompression(t *testing.T) {
	plain := get(t, "GET", "/console/uplot.js").Body.Bytes()
	for accepts, compressed := range map[string]bool{"": false, "gzip": true, "br, gzip": true,
		"GZIP;q=0.5": true, "gzip;q=0": false, "gzip;q=0.0": false, "br": false, "*": false,
		"gzip; q=1": true} {
		w := get(t, "GET", "/console/uplot.js", "Accept-Encoding", accepts)
		body := io.Reader(w.Body)
		if coding := w.Result().Header.Get("Content-Encoding"); (coding == "gzip") != compressed {
			t.Errorf("%q is answered with %q", accepts, coding)
			continue
		}
		if compressed {
			unpacked, err := gzip.NewReader(body)
			suite.Must(t, err)
			body = unpacked
		}
		if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%q: %d bytes, want %d; %v", accepts, len(got), len(plain), err)
		}
		if w.Result().Header.Get("Vary") != "Accept-Encoding" {
			t.Error("no Vary")
		}
	}
}

// TestEveryFileHasAType: a file in the folder that is not served is a mistake.
func TestEveryFileHasAType(t *testing.T) {
	entries, err := static.ReadDir("static")
	suite.Must(t, err)
	for _, e := range entries {
		if _, served := files()[e.Name()]; !served {
			t.Errorf("static/%s has no content type", e.Name())
		}
	}
}

// names are what files of the page name: imports, scripts and style sheets.
var names = regexp.MustCompile(`(?:from |src=|href=|import\()['"]([^'"#]+)['"]`)

// TestThePageIsWhole: every file that a file names is there, none is of another host, and the page
// has no inline script or style, which its policy would refuse.
func TestThePageIsWhole(t *testing.T) {
	found := 0
	for name, f := range files() {
		if strings.HasPrefix(name, "uplot") {
			continue
		}
		text := string(f.plain.body)
		for _, match := range names.FindAllStringSubmatch(text, -1) {
			found++
			path := strings.Replace(match[1], "./", Prefix, 1)
			if get(t, "GET", path).Code != 200 {
				t.Errorf("%s names %s, which is not there", name, match[1])
			}
		}
		for _, inline := range []string{"<script>", "<style", " style=", "onclick=", "innerHTML",
			"eval(", "//unpkg", "https://"} {
			if strings.Contains(text, inline) {
				t.Errorf("%s has %q", name, inline)
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d names were found", found)
	}
}

// TestVendored: what others wrote is as vendor.sh fetched it.
func TestVendored(t *testing.T) {
	list, err := os.ReadFile("vendor.sha256")
	suite.Must(t, err)
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) != 3 {
		t.Errorf("%d files, want 3", len(lines))
	}
	for _, line := range lines {
		want, name, _ := strings.Cut(line, "  ")
		body, err := os.ReadFile(name)
		if sum := sha256.Sum256(body); err != nil || hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not as vendored; run vendor.sh: %v", name, err)
		}
	}
}
