package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed static
var static embed.FS

// Prefix is where the files of the page are, but for the page itself, which is at /.
const Prefix = "/console/"

// page is the name of the file that is served at /.
const page = "index.html"

// policy lets the page load and ask for what its own node serves, and nothing else. It has no
// inline script and no inline style.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types are the content types of the files that are served, by the end of their names.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// form is a file as it is sent, plain or compressed.
type form struct {
	body []byte
	etag string
}

// file is a file of the page.
type file struct {
	kind       string // content type
	plain      form
	compressed form
}

// files are all files of the page by name, compressed once.
var files = sync.OnceValue(func() map[string]file {
	all := map[string]file{}
	entries, err := static.ReadDir("static")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	for _, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		if kind, served := types[path.Ext(e.Name())]; served {
			all[e.Name()] = file{kind, formOf(body), formOf(compress(body))}
		}
	}
	return all
})

func formOf(body []byte) form {
	sum := sha256.Sum256(body)
	return form{body, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

func compress(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // the level is right, and a buffer takes all
	}
	return b.Bytes()
}

// Handler serves the page at / and its files below [Prefix], for GET and HEAD. What is not among
// them, none answers.
//
// Browsers keep the files and ask each time whether they are still the same (304), so that a page
// never has files of two versions.
func Handler(none http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, below := strings.CutPrefix(r.URL.Path, Prefix)
		if r.URL.Path == "/" {
			name, below = page, true
		}
		f, known := files()[name]
		if !below || !known || name == page && r.URL.Path != "/" {
			none.ServeHTTP(w, r)
			return
		}
		send(w, r, f)
	})
}

func send(w http.ResponseWriter, r *http.Request, f file) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Type", f.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	as := f.plain
	if TakesGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		as = f.compressed
	}
	h.Set("ETag", as.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(as.body))
}

// TakesGzip reports whether a caller accepts gzip by its Accept-Encoding: the header names it without
// forbidding it (q=0).
func TakesGzip(accepts string) bool {
	for coding := range strings.SplitSeq(accepts, ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, q, _ := strings.Cut(weight, "=")
			return strings.Trim(q, " 0.") != "" || q == ""
		}
	}
	return false
}
