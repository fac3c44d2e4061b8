package roles

import (
	"crypto/subtle"
	"crypto/x509"
	"encoding/binary"
	"slices"
)

// Caller is one that may do something. Nothing changes it.
type Caller struct {
	Name  string
	roles []Role
	// domains holds the domains that the caller may name; nil: all.
	domains map[string]bool
	// trusted: on a port without roles, the caller has a certificate of a trusted authority, and
	// may do everything.
	trusted bool
}

// may reports whether the caller may make calls that need a role.
func (c *Caller) may(need Role) bool {
	return c.trusted || need == Known ||
		slices.ContainsFunc(c.roles, func(r Role) bool { return r.covers(need) })
}

// MayName reports whether the caller may name a domain. Without roles there is no caller, and every
// domain may be named.
func (c *Caller) MayName(domain string) bool {
	return c == nil || c.domains == nil || c.domains[domain]
}

// Callers are all of a roles file. Nothing changes them.
type Callers struct {
	all []*Caller
	// tokens finds a caller by the first bytes of a token's hash, and certificates by a name in a
	// certificate.
	tokens       map[uint64]holder
	certificates map[string]*Caller
}

// holder is who has a token.
type holder struct {
	caller *Caller
	hash   hash
}

func newCallers() *Callers {
	return &Callers{tokens: map[uint64]holder{}, certificates: map[string]*Caller{}}
}

// Count returns the number of callers.
func (c *Callers) Count() int { return len(c.all) }

// byToken returns the caller with a token, nil if there is none. What its duration shows depends on
// the token's hash alone, of which nobody learns a token.
func (c *Callers) byToken(token string) *Caller {
	sum, ok := hashOf(token)
	if !ok {
		return nil
	}
	found := c.tokens[sum.head()]
	if subtle.ConstantTimeCompare(found.hash[:], sum[:]) != 1 {
		return nil
	}
	return found.caller
}

func (h *hash) head() uint64 { return binary.LittleEndian.Uint64(h[:]) }

// byNames returns the caller that a certificate of these names is of, nil if it is of none, or of
// several.
func (c *Callers) byNames(names []string) (found *Caller) {
	for _, name := range names {
		one := c.certificates[name]
		if one != nil && found != nil && one != found {
			return nil
		}
		if one != nil {
			found = one
		}
	}
	return found
}

// dnsPrefix stands before the DNS names of certificates, which else have the form of no URI.
const dnsPrefix = "dns:"

// namesOf returns the names in a certificate by which the roles file can mean it.
func namesOf(cert *x509.Certificate) []string {
	names := make([]string, 0, len(cert.URIs)+len(cert.DNSNames))
	for _, u := range cert.URIs {
		names = append(names, u.String())
	}
	for _, name := range cert.DNSNames {
		names = append(names, dnsPrefix+name)
	}
	return names
}
