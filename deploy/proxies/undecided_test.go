//go:build proxies

package proxies

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// speaker stands where a proxy asks for a node, and says what a test tells it.
type speaker struct {
	net.Listener
	says string // for each connection; it is closed then
	mute bool   // say nothing, and keep the connection
}

func (s *speaker) serve() {
	for {
		c, err := s.Accept()
		if err != nil {
			return
		}
		go s.answer(c)
	}
}

func (s *speaker) answer(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil || s.mute {
		_, _ = io.Copy(io.Discard, c) // until the proxy gives up
		return
	}
	if r.URL.Path == "/livez" {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		return
	}
	_, _ = io.WriteString(c, s.says)
}

// says makes an answer with a status, and headers as lines.
func says(status, headers string) string {
	return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: 5\r\nConnection: close\r\n\r\nsaid\n"
}

const plain = "Content-Type: text/plain; charset=utf-8\r\n"

// TestProxiesPassWhatNobodyDecided alone: of all that may be said at quotad's address, and of what
// is not said there.
func TestProxiesPassWhatNobodyDecided(t *testing.T) {
	const passes, denies = true, false
	for name, r := range recipes {
		t.Run(name, func(t *testing.T) {
			for what, c := range map[string]struct {
				says string
				mute bool
				want bool
			}{
				"allowed":               {says("200 OK", `RateLimit: "a";r=1`+"\r\n"), false, passes},
				"busy":                  {says("503 Busy", "Quotad-Undecided: queue_full\r\n"), false, passes},
				"store failed":          {says("503 Failed", "Quotad-Undecided: failure\r\n"), false, passes},
				"silence":               {"", true, passes},
				"denied":                {says("429 Too Many Requests", "Retry-After: 1\r\n"), false, denies},
				"denied for nginx":      {says("403 Forbidden", "Retry-After: 1\r\n"), false, denies},
				"denied, store failed":  {says("503 Service Unavailable", ""), false, denies},
				"not readable":          {says("400 Bad Request", plain), false, denies},
				"headers too large":     {says("431 Request Header Fields Too Large", plain), false, denies},
				"no mapping":            {says("404 Not Found", plain), false, denies},
				"fault":                 {says("500 Internal Server Error", plain), false, denies},
				"bad gateway":           {says("502 Bad Gateway", plain), false, denies},
				"gateway timeout":       {says("504 Gateway Timeout", plain), false, denies},
				"elsewhere":             {says("302 Found", "Location: /\r\n"), false, denies},
				"undecided but not 503": {says("400 Bad Request", "Quotad-Undecided: failure\r\n"), false, denies},
				"no HTTP":               {"junk\r\n\r\n", false, denies},
				"one byte":              {"H", false, denies},
				"cut off":               {"HTTP/1.1 200 OK\r\nRate", false, denies},
			} {
				t.Run(what, func(t *testing.T) {
					l, err := net.Listen("tcp", "127.0.0.1:0")
					suite.Must(t, err)
					defer l.Close()
					at := &speaker{l, c.says, c.mute}
					go at.serve()
					s := &stage{t: t, app: startApp(t), quotad: l.Addr().String()}
					s.service = s.app.Listener.Addr().String()
					s.start(r)
					a := s.client("127.0.0.2").get(t, "POST", "/said")
					if arrived := s.app.count("/said") > 0; arrived != c.want ||
						(a.code == http.StatusOK) != c.want {
						t.Errorf("it arrived: %v; the client sees %v", arrived, a)
					}
				})
			}
		})
	}
}
