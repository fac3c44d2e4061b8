package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/roles"
)

// Port is how one of the two ports is protected: the API, which is for callers, and the admin
// listener, which is for operators. The zero value lets everybody do everything in plain text.
type Port struct {
	// TLS returns the configuration for these application protocols; nil: plain text.
	TLS   func(protocols ...string) *tls.Config
	Guard *roles.Guard
	Audit *audit.Log // nil: acts are written down nowhere
	// Hosts are the names by which a listener on loopback may be called that has no roles, beside
	// localhost and loopback addresses; in lower case.
	Hosts []string
}

// MayName returns a *roles.Refusal if the caller of a call may not name a domain.
func (p Port) MayName(ctx context.Context, domain string) error {
	if p.Guard == nil {
		return nil
	}
	c := roles.From(ctx)
	if c.MayName(domain) {
		return nil
	}
	a := actOf(ctx)
	return p.Guard.RefuseDomain(c, a.call, a.from)
}

// Done writes an act down, with what came of it. On a port that asks nobody for a name, anonymous did
// it.
func (p Port) Done(ctx context.Context, e audit.Event, err error) {
	e.Who, e.From, e.Outcome = "anonymous", actOf(ctx).from, audit.Done
	if c := roles.From(ctx); c != nil {
		e.Who = c.Name
	}
	if err != nil {
		e.Outcome, e.Why = audit.Failed, err.Error()
		if _, refused := errors.AsType[*roles.Refusal](err); refused {
			e.Outcome = audit.Refused
		}
	}
	p.Audit.Write(e)
}

// guarded refuses the requests that their callers may not make, before their bodies are read.
func (p Port) guarded(path string, next http.Handler) http.Handler {
	if p.Guard == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := p.Guard.Admit(path, CredentialsOf(r))
		if err != nil {
			WriteProblem(w, ProblemOf(err))
			return
		}
		next.ServeHTTP(w, r.WithContext(roles.With(WithAct(r), caller)))
	})
}

// CredentialsOf returns what a request brings to prove who makes it.
func CredentialsOf(r *http.Request) roles.Credentials {
	by := roles.Credentials{Authorization: r.Header.Get("Authorization"), From: r.RemoteAddr}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		by.Certificate = r.TLS.PeerCertificates[0]
	}
	return by
}

// act is what a handler needs to know of who made its call.
type act struct{ call, from string }

type actKey struct{}

// WithAct returns the context of a request, in which it is known where the request came from.
func WithAct(r *http.Request) context.Context {
	if _, has := r.Context().Value(actKey{}).(act); has {
		return r.Context()
	}
	return context.WithValue(r.Context(), actKey{}, act{r.Pattern, r.RemoteAddr})
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
