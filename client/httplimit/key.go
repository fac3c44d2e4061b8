package httplimit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/quotad/quotad/client/internal/ask"
)

// maxHops bounds the addresses of X-Forwarded-For that are looked at, from the right. The caller is
// then the last of these.
const maxHops = 32

// Charge is what a request is to be charged to.
type Charge struct {
	Descriptors map[string]string
	Cost        int64 // units, 1 to 2^51; 0 counts as 1
}

// Key says what a request is charged to, and whether limits apply to it at all. One to which they
// do not is served without asking.
type Key func(r *http.Request) (charge Charge, applies bool)

// Value reads a descriptor from a request. It is empty if the request has none.
type Value func(r *http.Request) string

// Values are descriptors by name.
type Values map[string]Value

// By returns a Key that sends these descriptors of every request, each with a cost of 1. An empty
// value is sent too, so that requests without it share what they are limited to. A value that no
// node would take, of more than 256 bytes or not UTF-8, is sent as "sha256:" and its digest in hex.
func By(values Values) Key {
	return func(r *http.Request) (Charge, bool) {
		of := make(map[string]string, len(values))
		for name, value := range values {
			of[name] = ask.Fitting(value(r))
		}
		return Charge{Descriptors: of}, true
	}
}

// Header returns the first value of a header. Callers choose it: use it for what was verified
// before, such as by a gateway that replaces it.
func Header(name string) Value {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// PathValue returns a wildcard of the pattern that http.ServeMux matched. It is known only to
// handlers of the mux: register limit(handler) with the pattern, and not limit(mux).
func PathValue(name string) Value {
	return func(r *http.Request) string { return r.PathValue(name) }
}

// Fixed returns the same value for every request, such as a name of the route.
func Fixed(value string) Value {
	return func(*http.Request) string { return value }
}

// RemoteAddr returns the address of the caller. That is the peer of the connection, unless it is a
// trusted proxy. Then it is the rightmost address of X-Forwarded-For that is no trusted proxy, or
// the leftmost one if all are. What stands left of a text that is no address is not believed.
// Of an IPv6 address its network of 64 bits counts. Empty if the peer has no IP address.
func RemoteAddr(trusted ...netip.Prefix) Value {
	trusted = slices.Clone(trusted)
	return func(r *http.Request) string {
		caller, ok := address(r.RemoteAddr)
		if !ok {
			return ""
		}
		hops := r.Header.Values("X-Forwarded-For")
		for range maxHops {
			if !slices.ContainsFunc(trusted, func(p netip.Prefix) bool {
				return p.Contains(caller)
			}) {
				break
			}
			var before string
			before, hops = last(hops)
			if caller, ok = keep(caller, before); !ok {
				break
			}
		}
		return ask.Network(caller)
	}
}

// keep returns the address that a text says, or the one known so far if it says none.
func keep(known netip.Addr, text string) (netip.Addr, bool) {
	if a, ok := address(text); ok {
		return a, true
	}
	return known, false
}

// last returns the last element of a list that may be in several lines, and what stands before it.
func last(lines []string) (element string, before []string) {
	if len(lines) == 0 {
		return "", nil
	}
	line := lines[len(lines)-1]
	comma := strings.LastIndexByte(line, ',')
	if comma < 0 {
		return strings.TrimSpace(line), lines[:len(lines)-1]
	}
	before = slices.Clone(lines)
	before[len(before)-1] = line[:comma]
	return strings.TrimSpace(line[comma+1:]), before
}

// address reads an address with or without a port.
func address(text string) (netip.Addr, bool) {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap().WithZone(""), err == nil
}
