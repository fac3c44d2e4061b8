package wire

import (
	"net/http"
	"slices"
	"strings"

	"github.com/quotad/quotad/region/base/door"
)

const otherSite = "a browser sent this for a page of another site (Origin, Sec-Fetch-Site), which quotad does not take; " +
	"call it from a service, not from a page"

// Routes are the paths of one port, each behind the port's guard.
type Routes struct {
	// Methods has those of each path.
	Methods map[string][]string
	port    Port
	mux     *http.ServeMux
	proxied []string // paths for proxies
}

// NewRoutes returns the routes of a port, with probes of a life and the description of all paths.
// none answers for all that is not there.
func NewRoutes(port Port, life *Life, none http.Handler) *Routes {
	p := &Routes{Methods: map[string][]string{}, port: port, mux: http.NewServeMux()}
	p.mux.Handle("/", none)
	p.Handle("/v1/openapi.yaml", describe, http.MethodGet, http.MethodHead)
	p.Handle("/livez", livez, http.MethodGet, http.MethodHead)
	p.Handle("/readyz", life.readyz, http.MethodGet, http.MethodHead)
	return p
}

// Missing answers for paths at which there is nothing.
func Missing(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteProblem(w, NewProblem(http.StatusNotFound, text))
	})
}

// Handle serves a path, for callers that package roles lets pass.
func (p *Routes) Handle(path string, h http.HandlerFunc, methods ...string) {
	p.Methods[path] = methods
	p.mux.Handle(path, p.port.guarded(path, only(h, methods...)))
}

// HandleProxied serves a path for proxies, which pass on what their clients send: any method, to any
// host, of a page of any site. The path is described with few methods.
func (p *Routes) HandleProxied(path string, h http.HandlerFunc, described ...string) {
	p.Methods[path] = described
	p.proxied = append(p.proxied, path)
	p.mux.Handle(path, p.port.guarded(path, h))
}

// handler returns the handler of all paths.
func (p *Routes) handler(panics *door.Panics) http.Handler {
	return recovering(panics, p.ownHosts(p.sameSite(p.mux)))
}

// sameSite refuses requests that a page of another site makes its visitor's browser send, unless
// they change nothing. Callers that are not browsers send no site and pass. So do proxies, which
// pass on what their clients' browsers send.
func (p *Routes) sameSite(next http.Handler) http.Handler {
	c := http.NewCrossOriginProtection()
	for _, path := range p.proxied {
		c.AddInsecureBypassPattern(path)
	}
	c.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteProblem(w, NewProblem(http.StatusForbidden, otherSite))
	}))
	return c.Handler(next)
}

// only refuses every method but the given ones.
func only(h http.HandlerFunc, methods ...string) http.Handler {
	allow := strings.Join(methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(methods, r.Method) {
			h(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		WriteProblem(w, NewProblem(http.StatusMethodNotAllowed, "use "+allow))
	})
}

// recovering answers 500 if a handler panics.
func recovering(panics *door.Panics, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler: // net/http ends the connection on it
				panic(p)
			default:
				panics.Recovered(r.Pattern, p)
				WriteProblem(w, NewProblem(http.StatusInternalServerError, door.Fault))
			}
		}()
		next.ServeHTTP(w, r)
	})
}
