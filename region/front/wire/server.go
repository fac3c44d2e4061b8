package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/quotad/quotad/region/base/door"
)

// NewServer returns the server of a port. It bounds what a client can occupy: slow headers, slow
// bodies, answers that it does not read, idle connections and endless headers. name is that of the
// port in the log. With streams above 0 it serves HTTP/2 as well, over TLS alone, as browsers do, and
// so many calls of one connection at a time; otherwise each connection has one request at a time, so
// bounds on connections are bounds on requests.
func (p *Routes) NewServer(name string, log *slog.Logger, panics *door.Panics, streams int) *http.Server {
	s := &http.Server{
		Handler: recovering(panics, p.ownHosts(p.sameSite(p.mux))),
		// A caller that is slower is answered 408 if possible, and its connection is closed.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second, // for headers and body
		WriteTimeout:      30 * time.Second, // for reading the request and writing the answer together
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10, // larger ones are answered 431
		ErrorLog:          door.NewHandshakes(log, name).ErrorLog(),
		BaseContext:       baseContext,
		Protocols:         &http.Protocols{},
	}
	protocols := []string{"http/1.1"}
	s.Protocols.SetHTTP1(true)
	if streams > 0 {
		s.Protocols.SetHTTP2(true)
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
		protocols = []string{"h2", "http/1.1"}
	}
	if p.port.TLS != nil {
		s.TLSConfig = p.port.TLS(protocols...)
	}
	return s
}

// Serve serves the port on l until Shutdown or Close, and then returns nil. It closes l.
func (p Port) Serve(s *http.Server, l net.Listener) (err error) {
	if p.TLS != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}
