package api

import (
	"context"
	"crypto/x509"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/roles"
)

// routes are the paths of one port, each behind the port's guard.
type routes struct {
	mux   *http.ServeMux
	guard *roles.Guard
	paths []string
	// methods has those of each path.
	methods map[string][]string
	none    http.Handler // answers for all that is not there
}

// newRoutes returns the routes of a port without paths. none is the text of the answer for all that
// is not there.
func newRoutes(guard *roles.Guard, none string) *routes {
	mux := http.NewServeMux()
	missing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, newProblem(http.StatusNotFound, none))
	})
	mux.Handle("/", missing)
	return &routes{mux: mux, guard: guard, methods: map[string][]string{}, none: missing}
}

// handle serves a path, for callers that package access lets pass.
func (p *routes) handle(path string, h http.HandlerFunc, methods ...string) {
	p.paths = append(p.paths, path)
	p.methods[path] = methods
	p.mux.Handle(path, guarded(p.guard, path, only(h, methods...)))
}

// handleAny is handle for a path that takes all methods, though it is described with few of them.
func (p *routes) handleAny(path string, h http.HandlerFunc, described ...string) {
	p.paths = append(p.paths, path)
	p.methods[path] = described
	p.mux.Handle(path, guarded(p.guard, path, h))
}

// act is what a handler needs to know of who made its call.
type act struct{ call, from string }

type actKey struct{}

// withAct returns the context of a request from which actOf tells where it came from.
func withAct(r *http.Request) context.Context {
	if _, has := r.Context().Value(actKey{}).(act); has {
		return r.Context()
	}
	return context.WithValue(r.Context(), actKey{}, act{r.Pattern, r.RemoteAddr})
}

// guarded refuses the requests that their callers may not make, before their bodies are read.
func guarded(guard *roles.Guard, path string, next http.Handler) http.Handler {
	if guard == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := guard.Admit(path, credentialsOf(r))
		if err != nil {
			writeProblem(w, toProblem(err))
			return
		}
		next.ServeHTTP(w, r.WithContext(roles.With(withAct(r), caller)))
	})
}

// credentialsOf returns what a request brings to prove who makes it.
func credentialsOf(r *http.Request) roles.Credentials {
	by := roles.Credentials{Authorization: r.Header.Get("Authorization"), From: r.RemoteAddr}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		by.Certificate = r.TLS.PeerCertificates[0]
	}
	return by
}

// guardRPC refuses the gRPC calls that their callers may not make, before they are decoded.
func guardRPC(guard *roles.Guard) door.Guard {
	return func(ctx context.Context, method string) (context.Context, error) {
		by := roles.Credentials{From: actOf(ctx).from}
		if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) == 1 {
			by.Authorization = given[0]
		}
		by.Certificate = certificateOf(ctx)
		caller, err := guard.Admit(method, by)
		if err != nil {
			return nil, toStatus(err)
		}
		return roles.With(ctx, caller), nil
	}
}

// certificateOf returns the certificate that the caller of a gRPC call showed, and that was
// verified. nil: none.
func certificateOf(ctx context.Context) *x509.Certificate {
	p, known := peer.FromContext(ctx)
	if !known {
		return nil
	}
	shaken, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(shaken.State.VerifiedChains) == 0 {
		return nil
	}
	return shaken.State.PeerCertificates[0]
}

// actOf returns which call has a context, and from where it came.
func actOf(ctx context.Context) act {
	if a, web := ctx.Value(actKey{}).(act); web {
		return a
	}
	a := act{}
	if p, known := peer.FromContext(ctx); known {
		a.from = p.Addr.String()
	}
	a.call, _ = grpc.Method(ctx)
	return a
}

// mayName returns a *roles.Refusal if the caller of a call to the API may not name a domain.
func (s *Server) mayName(ctx context.Context, domain string) error {
	return mayName(ctx, s.options.API.Guard, domain)
}

// mayNameAdmin is mayName for calls to the admin listener.
func (s *Server) mayNameAdmin(ctx context.Context, domain string) error {
	return mayName(ctx, s.options.Admin.Guard, domain)
}

func mayName(ctx context.Context, guard *roles.Guard, domain string) error {
	if guard == nil {
		return nil
	}
	c := roles.From(ctx)
	if c.MayName(domain) {
		return nil
	}
	a := actOf(ctx)
	return guard.RefuseDomain(c, a.call, a.from)
}

// refuseForeign marks the requests of a batch that name domains which their caller may not name.
// They are answered alone, and charge nothing.
func (s *Server) refuseForeign(ctx context.Context, all []admit.Request) {
	if s.options.API.Guard == nil {
		return
	}
	for i := range all {
		if q := &all[i]; q.Unread == nil && s.mayName(ctx, q.Domain) != nil {
			*q = admit.Request{Unread: &admit.FieldError{Field: "domain",
				Problem: "is none that this caller may name; see its domains in the roles file"}}
		}
	}
}

// refusalCode returns the code of HTTP and of gRPC for a refusal.
func refusalCode(r *roles.Refusal) (web int, rpc codes.Code) {
	if r.Caller == "" {
		return http.StatusUnauthorized, codes.Unauthenticated
	}
	return http.StatusForbidden, codes.PermissionDenied
}

func refusalStatus(r *roles.Refusal) error {
	_, code := refusalCode(r)
	return status.Error(code, r.Error())
}
