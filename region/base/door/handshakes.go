package door

import (
	stdlog "log"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// Handshakes logs the TLS handshakes of one port that fail: one a minute, with how many others there
// were. Clients without a trusted certificate, scanners and wrong settings would fill the log. Safe
// for concurrent use.
type Handshakes struct {
	port string

	mu     sync.Mutex
	log    *slog.Logger
	seldom Seldom
	others Seldom // what net/http has to say beside
}

// NewHandshakes returns a Handshakes for a port, by the name that its metrics have.
func NewHandshakes(log *slog.Logger, port string) *Handshakes {
	return &Handshakes{log: log, port: port}
}

// Tell sets where failures are logged from now on.
func (h *Handshakes) Tell(log *slog.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = log
}

// Failed takes in a failed handshake with an address.
func (h *Handshakes) Failed(from, why string) {
	if since, due := h.seldom.Due(time.Now()); due {
		log := h.logger()
		log.Warn("a TLS handshake failed; further ones are logged once a minute", "port", h.port,
			"from", from, "err", cut(why, largestValue), "unlogged", since)
	}
}

func (h *Handshakes) logger() *slog.Logger {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log
}

// ErrorLog returns the ErrorLog of a http.Server.
func (h *Handshakes) ErrorLog() *stdlog.Logger { return stdlog.New(h, "", 0) }

// handshakeFailed begins what net/http says about a failed handshake.
const handshakeFailed = "http: TLS handshake error from "

// Write implements io.Writer for ErrorLog. What is about no handshake is logged once a minute, too.
func (h *Handshakes) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if about, is := strings.CutPrefix(text, handshakeFailed); is {
		from, why, _ := strings.Cut(about, ": ")
		h.Failed(from, why)
	} else if since, due := h.others.Due(time.Now()); due {
		log := h.logger()
		log.Warn("the HTTP server reports a problem; further ones are logged once a minute",
			"port", h.port, "err", cut(text, largestValue), "unlogged", since)
	}
	return len(line), nil
}

// Credentials returns the credentials of a gRPC server, whose failed handshakes are logged.
func (h *Handshakes) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return toldCredentials{c, h}
}

type toldCredentials struct {
	credentials.TransportCredentials
	told *Handshakes
}

// ServerHandshake implements credentials.TransportCredentials.
func (c toldCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		c.told.Failed(raw.RemoteAddr().String(), err.Error())
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (c toldCredentials) Clone() credentials.TransportCredentials {
	return toldCredentials{c.TransportCredentials.Clone(), c.told}
}
