package door

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// TestHandshakesAreLoggedSeldom: of many failed handshakes one a minute is logged, with the number of
// the others, and so are other problems of the HTTP server.
func TestHandshakesAreLoggedSeldom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		h := NewHandshakes(slog.New(slog.NewTextHandler(&out, nil)), "http")
		lines := h.ErrorLog()
		flood := func() {
			for i := range 1000 {
				lines.Printf("http: TLS handshake error from 192.0.2.1:%d: remote error: tls: bad certificate", i)
				h.Failed(fmt.Sprintf("192.0.2.2:%d", i), strings.Repeat("x", 1<<10))
				lines.Printf("http: superfluous response.WriteHeader call")
			}
		}
		flood()
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("%d lines:\n%s", n, &out)
		}
		if !strings.Contains(out.String(), "from=192.0.2.1:0 err=\"remote error: tls: bad certificate\"") {
			t.Errorf("logged %s", &out)
		}
		time.Sleep(time.Minute)
		out.Reset()
		flood()
		if !strings.Contains(out.String(), "unlogged=1999") || !strings.Contains(out.String(), "unlogged=999") {
			t.Errorf("after a minute: %s", &out)
		}
	})
}
