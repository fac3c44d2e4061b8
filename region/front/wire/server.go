package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/quotad/quotad/region/base/door"
)

// Bounds of one HTTP connection. A caller that is slower is answered 408 if possible, and its
// connection is closed.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second // for headers and body
	writeTimeout  = 30 * time.Second // for reading the request and writing the answer together
	idleTimeout   = 2 * time.Minute
	// maxHeaderBytes bounds the headers. Larger ones are answered 431.
	maxHeaderBytes = 16 << 10
)

// Server serves one port over HTTP. Safe for concurrent use.
type Server struct {
	*http.Server
	trust     func(protocols ...string) *tls.Config // nil: plain text
	protocols []string
}

// NewServer returns the server of a port. It bounds what a client can occupy: slow headers, slow
// bodies, answers that it does not read, idle connections and endless headers. name is that of the
// port in the log. With streams above 0 it serves HTTP/2 as well, over TLS alone, as browsers do, and
// so many calls of one connection at a time; otherwise each connection has one request at a time, so
// bounds on connections are bounds on requests.
func (p *Routes) NewServer(name string, log *slog.Logger, panics *door.Panics, streams int) *Server {
	s := &Server{&http.Server{
		Handler:           p.handler(panics),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          door.NewHandshakes(log, name).ErrorLog(),
		BaseContext:       baseContext,
		Protocols:         &http.Protocols{},
	}, p.port.TLS, []string{"http/1.1"}}
	s.Protocols.SetHTTP1(true)
	if streams > 0 {
		s.Protocols.SetHTTP2(true)
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
		s.protocols = []string{"h2", "http/1.1"}
	}
	return s
}

// Serve serves on l until Shutdown or Close, and then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) (err error) {
	if s.trust != nil {
		s.TLSConfig = s.trust(s.protocols...)
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Server.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}
