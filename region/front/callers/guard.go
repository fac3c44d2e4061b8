package callers

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/roles"
)

// guardRPC refuses the gRPC calls that their callers may not make, before they are decoded.
func guardRPC(guard *roles.Guard) door.Guard {
	return func(ctx context.Context, method string) (context.Context, error) {
		by := roles.Credentials{}
		if p, known := peer.FromContext(ctx); known {
			by.From = p.Addr.String()
			if shaken, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(shaken.State.VerifiedChains) > 0 {
				by.Certificate = shaken.State.PeerCertificates[0]
			}
		}
		if given := metadata.ValueFromIncomingContext(ctx, "authorization"); len(given) == 1 {
			by.Authorization = given[0]
		}
		caller, err := guard.Admit(method, by)
		if err != nil {
			return nil, toStatus(err)
		}
		return roles.With(ctx, caller), nil
	}
}

// refuseForeign marks the requests of a batch that name domains which their caller may not name.
// They are answered alone, and charge nothing.
func (s *Server) refuseForeign(ctx context.Context, all []admit.Request) {
	if s.options.Guard == nil {
		return
	}
	for i := range all {
		if q := &all[i]; q.Unread == nil && s.options.MayName(ctx, q.Domain) != nil {
			*q = admit.Request{Unread: &admit.FieldError{Field: "domain",
				Problem: "is none that this caller may name; see its domains in the roles file"}}
		}
	}
}

// callerOf returns the caller of a call: the host at the other end of its connection. A proxy is
// one caller. The caller is never read from the call itself, because then one client could pass for
// many.
func callerOf(ctx context.Context) string {
	p, known := peer.FromContext(ctx)
	if !known {
		return ""
	}
	return door.HostAt(p.Addr)
}
