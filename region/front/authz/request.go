package authz

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
)

// maxForwarded bounds the addresses of X-Forwarded-For that are looked at, from the right.
const maxForwarded = 64

// Outcome is what a mapping makes of a request.
type Outcome struct {
	Request admit.Request
	// Ruled says that a rule is for the request. Otherwise Request is empty.
	Ruled bool
	// Ignored says that the request has headers that only a trusted proxy may set, and came from
	// elsewhere.
	Ignored bool
}

// client is what a client asked a proxy for. What is not known is empty.
type client struct {
	method, host, path, query string
	header                    http.Header
	address                   netip.Addr
	peer                      netip.Addr
	trusted                   bool // the peer is
}

// unknown returns the error for a fact that a rule needs.
func (c *client) unknown(fact string) error {
	problem := "is not known: the proxy does not say it; have it set the header that the mapping names (forwarded)"
	if !c.trusted {
		problem = fmt.Sprintf("is not known: %s is no trusted proxy; add its address to trusted", c.peer)
	}
	return &invalid.Field{Name: fact, Problem: problem}
}

// Map makes a request for quotad of one that a proxy sends. The error is an *invalid.Field that
// names what is missing or given twice.
func (m *Mapping) Map(r *http.Request) (Outcome, error) {
	peer := addressOf(r.RemoteAddr)
	c := &client{header: r.Header, address: peer, peer: peer, trusted: m.trusts(peer)}
	out := Outcome{Ignored: !c.trusted && m.forwarded(r.Header)}
	if c.trusted {
		if err := m.believe(c); err != nil {
			return out, err
		}
	}
	for i := range m.rules {
		is, err := m.rules[i].matches(c)
		if err != nil {
			return out, err
		}
		if is {
			out.Ruled = true
			out.Request, err = m.rules[i].request(c)
			return out, err
		}
	}
	return out, nil
}

// forwarded reports whether a request has any of the headers that only trusted proxies are believed.
func (m *Mapping) forwarded(h http.Header) bool {
	return slices.ContainsFunc([]string{m.method, m.uri, m.host, m.address},
		func(name string) bool { return name != "" && len(h.Values(name)) > 0 })
}

// believe takes from the headers of a trusted proxy what its client asked for.
func (m *Mapping) believe(c *client) (err error) {
	said := func(name string) string {
		if name == "" {
			return ""
		}
		all := c.header.Values(name)
		if len(all) > 1 && err == nil {
			err = twice(name)
		}
		return strings.Join(all, "")
	}
	c.method, c.host = said(m.method), strings.ToLower(withoutPort(said(m.host)))
	if text := said(m.uri); text != "" && err == nil {
		uri, wrong := url.ParseRequestURI(text)
		if wrong != nil {
			return invalid.Fieldf(m.uri, "is no URI; have the proxy set it to the client's")
		}
		c.path, c.query = cleaned(uri.Path), uri.RawQuery
	}
	if m.address != "" {
		c.address = m.clientOf(c.address, c.header.Values(m.address))
	}
	return err
}

func twice(name string) error {
	return invalid.Fieldf(name, "is given more than once; have the proxy replace it, not add to it")
}

// clientOf returns the client's address: the last one in the lists that no trusted proxy has. An
// address that cannot be read ends the search, for what stands before it may be made up; then it is
// the proxy's that sent it.
func (m *Mapping) clientOf(peer netip.Addr, lists []string) netip.Addr {
	last := peer
	for i, n := len(lists)-1, 0; i >= 0; i-- {
		all := strings.Split(lists[i], ",")
		for _, text := range slices.Backward(all) {
			a, err := netip.ParseAddr(withoutPort(strings.TrimSpace(text)))
			if n++; err != nil || n > maxForwarded {
				return last
			}
			if last = a.Unmap().WithZone(""); !m.trusts(last) {
				return last
			}
		}
	}
	return last
}

func (m *Mapping) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(m.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// addressOf returns the address of host:port, or none.
func addressOf(hostPort string) netip.Addr {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(host)
	return a.Unmap().WithZone("")
}

// withoutPort returns the host of host:port, or of a host alone.
func withoutPort(text string) string {
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
}

// cleaned returns a decoded path in its shortest form: without . and .., and without empty
// segments.
func cleaned(p string) string {
	whole := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && whole != "/" {
		whole += "/"
	}
	return whole
}

// request describes a request that the rule is for.
func (r *rule) request(c *client) (admit.Request, error) {
	q := admit.Request{Domain: r.domain, Cost: 1, Descriptors: make(map[string]string, len(r.parts))}
	for i := range r.parts {
		p := &r.parts[i]
		value, given, err := p.value(c)
		if p.known != nil {
			value = p.known[value]
		}
		switch {
		case err != nil:
			return q, err
		case given && value != "" || p.from == fixed:
			q.Descriptors[p.name] = bounded(value)
		case p.hasUsual:
			q.Descriptors[p.name] = p.usual
		case !p.optional:
			return q, p.missing(given)
		}
	}
	if r.cost == nil {
		return q, nil
	}
	all := c.header.Values(r.cost.header)
	if len(all) == 0 {
		return q, nil
	}
	n, err := strconv.ParseInt(all[0], 10, 64)
	if err != nil || len(all) > 1 || n < 1 || n > r.cost.most {
		return q, invalid.Fieldf("cost", "header %s must have one whole number from 1 to %d", r.cost.header, r.cost.most)
	}
	q.Cost = quantity.Units(n)
	return q, nil
}

// missing returns the error for a descriptor that a request lacks, whose source it may have given.
func (p *part) missing(given bool) error {
	problem := fmt.Sprintf("is missing: the request has no %s %s; have the proxy send it, or give the descriptor a default",
		p.from, p.of)
	if given && p.known != nil {
		problem = fmt.Sprintf("is missing: the request's %s %s is none of the mapping's values; add it there, or write optional: true",
			p.from, p.of)
	}
	return &invalid.Field{Name: "descriptors." + p.name, Problem: problem}
}

// value returns the value of a descriptor, and whether the request has it.
func (p *part) value(c *client) (value string, given bool, err error) {
	one := func(all []string) (string, bool, error) {
		if len(all) > 1 {
			return "", false, twice(string(p.from) + " " + p.of)
		}
		return strings.Join(all, ""), len(all) > 0, nil
	}
	switch p.from {
	case fromHeader:
		return one(c.header.Values(p.of))
	case fromQuery:
		if c.path == "" {
			return "", false, c.unknown("query")
		}
		query, err := url.ParseQuery(c.query)
		if err != nil {
			return "", false, invalid.Fieldf("query", "is malformed")
		}
		return one(query[p.of])
	case fromCookie:
		var all []string
		for _, cookie := range (&http.Request{Header: c.header}).CookiesNamed(p.of) {
			all = append(all, cookie.Value)
		}
		return one(all)
	case fromPath:
		if c.path == "" {
			return "", false, c.unknown("path")
		}
		return p.beginning(c.path), true, nil
	case fromMethod:
		return c.fact("method", c.method)
	case fromHost:
		return c.fact("host", c.host)
	case fromAddress:
		return p.network(c.address), c.address.IsValid(), nil
	}
	return p.of, true, nil
}

// fact returns what the proxy says, or an error if it does not.
func (c *client) fact(name, said string) (string, bool, error) {
	if said == "" {
		return "", false, c.unknown(name)
	}
	return said, true, nil
}

// beginning returns the first segments of a path.
func (p *part) beginning(whole string) string {
	if p.segments == 0 {
		return whole
	}
	segments := strings.SplitN(strings.Trim(whole, "/"), "/", p.segments+1)
	return "/" + strings.Join(segments[:min(len(segments), p.segments)], "/")
}

// network returns the network of an address, or the address itself if that is all of it.
func (p *part) network(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	bits := p.v6
	if a.Is4() {
		bits = p.v4
	}
	if bits == a.BitLen() {
		return a.String()
	}
	return netip.PrefixFrom(a, bits).Masked().String()
}

const digest = "sha256:"

// bounded returns a value, or its digest if the value cannot be a descriptor's. A value that looks
// like a digest is replaced by its own, so that different values stay different.
func bounded(value string) string {
	if len(value) <= admit.MaxValueBytes && utf8.ValidString(value) && !strings.HasPrefix(value, digest) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return digest + hex.EncodeToString(sum[:])
}
