package callers

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/wire"
)

// forProxies answers proxies that ask whether to let a request of their client pass: nginx'
// auth_request, Caddy's forward_auth, Traefik's forwardAuth, HAProxy. A mapping says what the
// request is described by. The zero value has none.
type forProxies struct {
	mapping *authz.Mapping
	// unruled counts requests that no rule is for, and ignored those with headers that only a
	// trusted proxy may set.
	unruled, ignored prometheus.Counter
}

func newForProxies(m *authz.Mapping) forProxies {
	return forProxies{m, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "quotad_authz_unruled_total",
		Help: "Requests at /v1/authz that no rule of the mapping is for."}),
		prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_authz_untrusted_total",
			Help: "Requests at /v1/authz whose X-Forwarded-* headers were ignored, as they came from no trusted address."})}
}

const noMapping = "this node has no mapping of proxies' requests to descriptors; name one in its setting authz"

// authz answers 200 to what may pass and 429 to what may not, with the headers of a decision. A
// request that the mapping cannot describe is answered 400, and one that a limit denies because the
// store failed 503. With ?deny=403 these refusals are 403 instead, since nginx' auth_request takes
// other codes for a failure of quotad. A request that the node did not decide, for want of time or
// because its store failed, is 503 even then, and has the header Quotad-Undecided: the proxy does what
// it does without quotad.
//
// Any method is taken and no body read, since proxies send their clients' requests. Those of pages
// of other sites are taken too: what they could do is spend their visitor's quota, as they can by
// the proxy.
func (s *Server) authz(w http.ResponseWriter, r *http.Request) {
	if s.proxies.mapping == nil {
		wire.WriteProblem(w, wire.NewProblem(http.StatusNotFound, noMapping))
		return
	}
	refused := func(code int) int { return code }
	if r.URL.Query().Get("deny") == "403" {
		refused = func(int) int { return http.StatusForbidden }
	}
	host := door.HostOf(r.RemoteAddr)
	ends := time.Now().Add(proxyWait)
	held := s.take(r.Context(), "http", host, r.RemoteAddr, 0, ends, false)
	if held == nil {
		writeFailure(w, errShed)
		return
	}
	defer held.Done()
	d, err := s.decideFor(r, host, held, max(time.Until(ends), httpWait))
	if err != nil {
		if p := wire.ProblemOf(err); p.Status != http.StatusServiceUnavailable {
			p.Status = refused(p.Status)
			p.Title = http.StatusText(p.Status)
			wire.WriteProblem(w, p)
			return
		}
		writeFailure(w, err)
		return
	}
	s.options.Headers.set(w.Header(), d, s.options.MaxRate)
	if d.Allowed {
		wire.Write(w, "application/json", http.StatusOK, newDecision(d))
		return
	}
	setRetryAfter(w.Header(), d)
	p := denial(d)
	p.Status = refused(p.Status)
	wire.Write(w, wire.ProblemType, p.Status, p)
}

// decideFor decides what the mapping makes of a proxy's request, which waits for its turn at most as
// long as wait says.
func (s *Server) decideFor(r *http.Request, host string, held *door.Held,
	wait time.Duration) (d admit.Decision, err error) {
	made, err := s.proxies.mapping.Map(r)
	if made.Ignored {
		s.proxies.ignored.Inc()
	}
	if err != nil {
		return d, err
	}
	if !made.Ruled {
		s.proxies.unruled.Inc()
		return admit.Decision{Allowed: !s.proxies.mapping.DenyOthers, Reason: admit.NoLimit}, nil
	}
	q := made.Request
	q.Caller = host
	if err := s.options.MayName(r.Context(), q.Domain); err != nil {
		return d, err
	}
	q.Wait = wait // Grpc-Timeout may be of the proxy's client
	return s.node.Check(admit.OnHandover(r.Context(), held.Done), q)
}
