package operators

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/console"
	"github.com/quotad/quotad/region/front/wire"
)

const (
	// watchEvery is how often a watcher is told an overview.
	watchEvery = time.Second
	// watchHottest is how many hottest buckets it has.
	watchHottest = 10
	// maxWatchers bounds the watchers of a node. One more is answered 503.
	maxWatchers = 16
	// maxWatch ends each watch, so that a forgotten one does not stay. Watchers come again.
	maxWatch = time.Hour
	// watchWrite bounds how long a watcher takes to read an event. A slower one is cut off.
	watchWrite = 10 * time.Second
	// watchRetry is after how long a watcher should come again that was cut off or refused.
	watchRetry = 5 * time.Second
)

// watch tells a caller an overview each second as server-sent events, until the caller goes, the
// node ends, the caller may watch no more, or maxWatch is over. All watchers share the overview of
// a second.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		w.Header().Set("Retry-After", fmt.Sprint(int(watchRetry.Seconds())))
		wire.WriteProblem(w, wire.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf(
			"%d callers watch this node already, which is the most; close a console, "+
				"watch another node, or ask /v1/overview", maxWatchers)))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxWatch)
	defer cancel()
	defer context.AfterFunc(s.life.Ending(), cancel)()

	to := newEvents(w, r)
	defer to.end()
	tell := func(text []byte) {
		if !to.send(text) {
			cancel()
		}
	}
	tell(fmt.Appendf(nil, "retry: %d\n\n", watchRetry.Milliseconds()))
	if r.Method == http.MethodHead {
		return
	}
	tell(s.watchEvent(ctx))
	repeat.Every(ctx, watchEvery, func(time.Time) {
		if ctx.Err() != nil || !s.mayStay(r) {
			cancel()
			return
		}
		tell(s.watchEvent(ctx))
	})
}

// events is a stream of them to one caller. Overviews resemble each other, so that they are sent
// compressed to who takes that: a twelfth of the bytes.
type events struct {
	plain      http.ResponseWriter
	compressed *gzip.Writer // nil: the caller takes none
	control    *http.ResponseController
}

func newEvents(w http.ResponseWriter, r *http.Request) *events {
	e := &events{plain: w, control: http.NewResponseController(w)}
	_ = e.control.SetReadDeadline(time.Time{}) // that of the request, which would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept-Encoding")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx would hold events back
	if console.TakesGzip(r.Header.Get("Accept-Encoding")) && r.Method != http.MethodHead {
		w.Header().Set("Content-Encoding", "gzip")
		e.compressed, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // a level that there is
	}
	return e
}

// send sends text at once. It returns false if the caller has gone, or did not read for watchWrite.
func (e *events) send(text []byte) bool {
	_ = e.control.SetWriteDeadline(time.Now().Add(watchWrite))
	var err error
	if e.compressed == nil {
		_, err = e.plain.Write(text)
	} else if _, err = e.compressed.Write(text); err == nil {
		err = e.compressed.Flush()
	}
	return err == nil && e.control.Flush() == nil
}

// end ends what is compressed. If that fails, the caller has gone.
func (e *events) end() {
	if e.compressed != nil {
		_ = e.compressed.Close()
	}
}

// watchEvent returns an overview as an event.
func (s *Server) watchEvent(ctx context.Context) []byte {
	o, err := s.overviewFor(ctx, watchHottest)
	if err != nil { // watchHottest is within its bounds
		return fmt.Appendf(nil, ": %v\n\n", err)
	}
	return fmt.Appendf(nil, "event: overview\ndata: %s\n\n", asjson.Marshal(o))
}

// mayStay reports whether the caller of a request that takes long may still make it: the roles file
// may have changed.
func (s *Server) mayStay(r *http.Request) bool {
	_, err := s.options.Guard.Admit(watchPath, wire.CredentialsOf(r))
	return err == nil
}
