package wire

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

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
