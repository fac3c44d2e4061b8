package api

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quotad/quotad/region/front/console"
)

const watchPath = "/v1/watch"

// maxAdminCalls bounds the calls of one connection over HTTP/2 that are served at a time.
const maxAdminCalls = 16

// maxProfile bounds how long a profile of the process takes, in seconds.
const maxProfile = 60

const noSuchAdminPath = "there is nothing at this path of the admin listener; " +
	"see / (a page for browsers), /v1/status, /v1/overview, /v1/watch, /v1/explain/{limit}, /v1/buckets, /v1/buckets/{limit}, /v1/document, /v1/documents, /v1/apply, /v1/reset, /v1/recover, /v1/cut, /v1/rehearse, /v1/openapi.yaml, /metrics, /debug/pprof/, /livez and " +
	"/readyz; the API (listen.http) has the others"

// adminHandler returns the handler of the admin listener.
func (s *Server) adminHandler() http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(s.work, s.rls.ignored, s.rls.unreturned, s.rls.tooMany, s.proxies.unruled, s.proxies.ignored, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := promhttp.HandlerFor(prometheus.Gatherers{s.node.Metrics(), process},
		promhttp.HandlerOpts{})

	paths := s.adminRoutes(metrics)
	return s.recovering(s.ownHosts(s.options.Admin, sameSite(paths.mux)))
}

// adminRoutes returns the paths of the admin listener. pprof's page of the command line is left
// out, because flags may have secrets.
func (s *Server) adminRoutes(metrics http.Handler) *routes {
	get, post := []string{http.MethodGet, http.MethodHead}, []string{http.MethodPost}
	p := newRoutes(s.options.Admin.Guard, noSuchAdminPath)
	p.handle("/v1/status", s.status, get...)
	p.handle("/v1/overview", s.webOverview, get...)
	p.handle(watchPath, s.watch, get...)
	p.handle("/v1/explain/{limit}", s.webExplain, get...)
	p.handle("/v1/buckets", s.webListBuckets, get...)
	p.handle("/v1/buckets/{limit}", s.bucket, get...)
	p.handle("/v1/document", s.document, get...)
	p.handle("/v1/documents", s.documents, get...)
	p.handle("/v1/apply", s.apply, post...)
	p.handle("/v1/reset", s.reset, post...)
	p.handle("/v1/recover", s.waive, post...)
	p.handle("/v1/cut", s.cut, post...)
	p.handle("/v1/rehearse", s.rehearse, post...)
	p.handle("/metrics", metrics.ServeHTTP, get...)
	p.handle("/debug/pprof/", bounded(pprof.Index), get...)
	p.handle("/debug/pprof/profile", bounded(pprof.Profile), get...)
	p.handle("/debug/pprof/trace", bounded(pprof.Trace), get...)
	page := console.Handler(p.none)
	p.handle("/{$}", page.ServeHTTP, get...)
	p.handle(console.Prefix+"{file}", page.ServeHTTP, get...)
	p.handle("/v1/openapi.yaml", describe, get...)
	p.handle("/livez", livez, get...)
	p.handle("/readyz", s.readyz, get...)
	return p
}

// bounded refuses profiles that would take longer than maxProfile.
func bounded(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds := r.URL.Query()["seconds"]
		if len(seconds) > 0 {
			n, err := strconv.Atoi(seconds[0])
			if err != nil || n < 1 || n > maxProfile {
				writeProblem(w, newProblem(http.StatusBadRequest, fmt.Sprintf(
					"seconds: must be a whole number from 1 to %d", maxProfile)))
				return
			}
		}
		profile(w, r)
	}
}
