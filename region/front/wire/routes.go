package wire

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
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
func NewRoutes(port Port, life *Life, none http.HandlerFunc) *Routes {
	p := &Routes{Methods: map[string][]string{}, port: port, mux: http.NewServeMux()}
	p.mux.HandleFunc("/", none)
	p.Handle("/v1/openapi.yaml", describe, http.MethodGet, http.MethodHead)
	p.Handle("/livez", livez, http.MethodGet, http.MethodHead)
	p.Handle("/readyz", life.readyz, http.MethodGet, http.MethodHead)
	return p
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

// onLoopback is in the context of each request of a listener that this machine alone reaches.
type onLoopback struct{}

// baseContext says in the context of a listener's requests whether it is on loopback.
func baseContext(l net.Listener) context.Context {
	at, err := netip.ParseAddrPort(l.Addr().String())
	return context.WithValue(context.Background(), onLoopback{}, err == nil && at.Addr().IsLoopback())
}

// ownHosts refuses requests to a listener on loopback that anybody may call, if they are for another
// host than this machine or one of the port's. A page whose name is made to lead to 127.0.0.1 would
// otherwise be no other site (DNS rebinding): its visitor's browser would let it reset use and read
// all. Proxies pass on the hosts that their clients name, so their paths take any.
func (p *Routes) ownHosts(next http.Handler) http.Handler {
	if p.port.Guard != nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, _ := r.Context().Value(onLoopback{}).(bool); own && !isOwn(r.Host, p.port.Hosts) &&
			!slices.Contains(p.proxied, r.URL.Path) {
			WriteProblem(w, NewProblem(http.StatusMisdirectedRequest, fmt.Sprintf(
				"this listener is for this machine alone, and takes requests to localhost and loopback "+
					"addresses, not to %.64q: use one of these, or add the name to listen.hosts", r.Host)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwn reports whether a host, with or without a port, is this machine's loopback or one of names. A
// request that names none is no browser's.
func isOwn(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || err == nil && ip.IsLoopback() ||
		slices.Contains(names, host)
}
