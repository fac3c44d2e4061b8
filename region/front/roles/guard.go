package roles

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/base/door"
)

// Guard stands before the calls of one port. Safe for concurrent use. A nil Guard lets everybody
// pass, for ports on loopback and those that the operator calls insecure.
type Guard struct {
	port string
	book *Book // nil: whoever has a certificate of a trusted authority may do everything
	log  *slog.Logger
	now  func() time.Time

	seldom  door.Seldom
	refused *prometheus.CounterVec
}

// NewGuard returns the guard of a port. Without a book it lets everybody pass who has a certificate
// of an authority that the port trusts.
func NewGuard(port string, book *Book, log *slog.Logger) *Guard {
	return &Guard{port: port, book: book, log: log, now: time.Now,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotad_unauthorized_total",
			Help: "Calls that were refused because of who made them, by port and reason: " +
				"credentials (none), token or certificate (of no caller), expired, role, domain.",
			ConstLabels: prometheus.Labels{"port": port}}, []string{"reason"})}
}

// Credentials are what a call brings to prove who makes it.
type Credentials struct {
	Authorization string // the header; empty: none
	// Certificate is the caller's, which an authority that the port trusts has signed. nil: none.
	Certificate *x509.Certificate
	From        string // ip:port
}

// The reasons of refusals.
const (
	noCredentials = "credentials"
	badToken      = "token"
	badName       = "certificate"
	expired       = "expired"
	notItsRole    = "role"
	notItsDomain  = "domain"
)

// Refusal is the error of a call that its caller may not make.
type Refusal struct {
	// Caller is the caller's name, empty if it is not known who calls.
	Caller string
	text   string
}

// Error implements error. The text is fit to show to the caller.
func (r *Refusal) Error() string { return r.text }

const (
	tellCredentials = "this port asks who calls: send Authorization: Bearer TOKEN, or show a " +
		"client certificate that the roles file names"
	tellToken   = "the token is that of no caller; ask the operators of quotad for another"
	tellName    = "the certificate names no caller; ask the operators of quotad to name it in the roles file"
	tellExpired = "the certificate has expired; connect again with another"
)

// Admit returns who makes a call. The error is a *Refusal if the caller may not. The caller is nil
// if nobody needs to be known.
func (g *Guard) Admit(call string, by Credentials) (*Caller, error) {
	if g == nil {
		return nil, nil
	}
	need, known := NeedOf(call)
	if known && need == Open {
		return nil, nil
	}
	caller, reason, text := g.identify(by)
	switch {
	case reason != "":
		return nil, g.refuse(reason, call, by.From, &Refusal{text: text})
	case !known || !caller.may(need):
		return nil, g.refuse(notItsRole, call, by.From, &Refusal{caller.Name, fmt.Sprintf(
			"%s may not do this: it needs the role %s", caller.Name, need)})
	}
	return caller, nil
}

// identify returns who calls, or the reason why nobody is known to, with a text for the caller.
func (g *Guard) identify(by Credentials) (c *Caller, reason, text string) {
	if by.Authorization != "" && g.book != nil {
		token, ok := bearer(by.Authorization)
		if c := g.book.Callers().byToken(token); ok && c != nil {
			return c, "", ""
		}
		return nil, badToken, tellToken
	}
	switch cert := by.Certificate; {
	case cert == nil:
		return nil, noCredentials, tellCredentials
	case g.now().After(cert.NotAfter):
		return nil, expired, tellExpired
	case g.book == nil:
		return &Caller{Name: trustedName(cert), trusted: true}, "", ""
	}
	if c := g.book.Callers().byNames(namesOf(by.Certificate)); c != nil {
		return c, "", ""
	}
	return nil, badName, tellName
}

// bearer returns the token of an Authorization header.
func bearer(header string) (token string, ok bool) {
	const scheme = "Bearer "
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	return header[len(scheme):], true
}

// trustedName names a certificate in the audit log. Where there are roles its names are those of
// the roles file.
func trustedName(cert *x509.Certificate) string {
	if names := namesOf(cert); len(names) > 0 {
		return names[0]
	}
	return cert.Subject.CommonName
}

// RefuseDomain returns the error of a call about a domain that its caller may not name. c is known.
func (g *Guard) RefuseDomain(c *Caller, call, from string) error {
	return g.refuse(notItsDomain, call, from, &Refusal{c.Name,
		c.Name + " may not name this domain; see the domains of the caller in the roles file"})
}

// refuse counts a refusal, and logs at most one a minute: whoever reaches the port can cause any
// number. The log has neither credentials nor keys.
func (g *Guard) refuse(reason, call, from string, r *Refusal) error {
	g.refused.WithLabelValues(reason).Inc()
	if unlogged, due := g.seldom.Due(g.now()); due {
		g.log.Warn("a call was refused because of who made it", "port", g.port, "reason", reason,
			"call", call, "caller", r.Caller, "from", from, "unlogged", unlogged)
	}
	return r
}

// Describe implements prometheus.Collector.
func (g *Guard) Describe(ch chan<- *prometheus.Desc) { g.refused.Describe(ch) }

// Collect implements prometheus.Collector.
func (g *Guard) Collect(ch chan<- prometheus.Metric) { g.refused.Collect(ch) }

type callerKey struct{}

// With returns a context that has the caller of a call.
func With(ctx context.Context, c *Caller) context.Context {
	if c == nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// From returns the caller of a call, nil if nobody needed to be known.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
