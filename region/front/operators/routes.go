package operators

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quotad/quotad/region/front/console"
	"github.com/quotad/quotad/region/front/wire"
)

const watchPath = "/v1/watch"

// maxAdminCalls bounds the calls of one connection over HTTP/2 that are served at a time.
const maxAdminCalls = 16

// maxProfile bounds how long a profile of the process takes, in seconds.
const maxProfile = 60

const noSuchPath = "there is nothing at this path of the admin listener; " +
	"see / (a page for browsers), /v1/status, /v1/overview, /v1/watch, /v1/explain/{limit}, /v1/buckets, /v1/buckets/{limit}, /v1/document, /v1/documents, /v1/apply, /v1/reset, /v1/recover, /v1/cut, /v1/rehearse, /v1/openapi.yaml, /metrics, /debug/pprof/, /livez and " +
	"/readyz; the API (listen.http) has the others"

// missing answers for all that is not there.
func missing(w http.ResponseWriter, _ *http.Request) {
	wire.WriteProblem(w, wire.NewProblem(http.StatusNotFound, noSuchPath))
}

// newRoutes returns the paths of the admin listener. pprof's page of the command line is left out,
// because flags may have secrets.
func (s *Server) newRoutes(metrics []prometheus.Collector) *wire.Routes {
	process := prometheus.NewRegistry()
	process.MustRegister(metrics...)
	process.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	page := promhttp.HandlerFor(prometheus.Gatherers{s.node.Metrics(), process},
		promhttp.HandlerOpts{})
	files := console.Handler(http.HandlerFunc(missing))

	get, post := []string{http.MethodGet, http.MethodHead}, []string{http.MethodPost}
	p := wire.NewRoutes(s.options.Port, s.life, missing)
	p.Handle("/v1/status", s.status, get...)
	p.Handle("/v1/overview", s.webOverview, get...)
	p.Handle(watchPath, s.watch, get...)
	p.Handle("/v1/explain/{limit}", s.explain, get...)
	p.Handle("/v1/buckets", s.buckets, get...)
	p.Handle("/v1/buckets/{limit}", s.bucket, get...)
	p.Handle("/v1/document", s.document, get...)
	p.Handle("/v1/documents", s.documents, get...)
	p.Handle("/v1/apply", s.apply, post...)
	p.Handle("/v1/reset", s.reset, post...)
	p.Handle("/v1/recover", s.waive, post...)
	p.Handle("/v1/cut", s.cut, post...)
	p.Handle("/v1/rehearse", s.rehearse, post...)
	p.Handle("/metrics", page.ServeHTTP, get...)
	p.Handle("/debug/pprof/", bounded(pprof.Index), get...)
	p.Handle("/debug/pprof/profile", bounded(pprof.Profile), get...)
	p.Handle("/debug/pprof/trace", bounded(pprof.Trace), get...)
	p.Handle("/{$}", files.ServeHTTP, get...)
	p.Handle(console.Prefix+"{file}", files.ServeHTTP, get...)
	return p
}

// bounded refuses profiles that would take longer than maxProfile.
func bounded(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds := r.URL.Query()["seconds"]
		if len(seconds) > 0 {
			n, err := strconv.Atoi(seconds[0])
			if err != nil || n < 1 || n > maxProfile {
				wire.WriteProblem(w, wire.NewProblem(http.StatusBadRequest, fmt.Sprintf(
					"seconds: must be a whole number from 1 to %d", maxProfile)))
				return
			}
		}
		profile(w, r)
	}
}
