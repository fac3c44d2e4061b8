package callers

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/quotad/quotad/region/decide/admit"
)

// Headers says which headers an answer has beside Retry-After.
type Headers string

// Which headers an answer has. The empty text is BothHeaders.
const (
	// IETFHeaders are RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-10: of
	// each limit that applied an item, by its name. A policy has the limit of all regions together
	// as q, the window in seconds as w, and what this region holds now as quotad-share. A limit has
	// what is left in this region as r, and as t after how many seconds the request may come again,
	// or the limit is whole if the request was admitted.
	IETFHeaders Headers = "ietf"
	// LegacyHeaders are X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, of the
	// limit that decided. The last is t.
	LegacyHeaders Headers = "legacy"
	BothHeaders   Headers = "both"
	NoHeaders     Headers = "off"
)

// HeaderStyles lists all.
func HeaderStyles() []Headers {
	return []Headers{IETFHeaders, LegacyHeaders, BothHeaders, NoHeaders}
}

func (style Headers) has(one Headers) bool {
	return style == one || style == BothHeaders || style == ""
}

// set sets the headers about a decision.
func (style Headers) set(h http.Header, d admit.Decision) {
	if d.Limit == "" {
		return
	}
	if style.has(LegacyHeaders) {
		setLegacy(h, d)
	}
	if style.has(IETFHeaders) {
		setIETF(h, d)
	}
}

// Names of headers as net/http writes them.
var (
	legacyLimit     = http.CanonicalHeaderKey("X-RateLimit-Limit")
	legacyRemaining = http.CanonicalHeaderKey("X-RateLimit-Remaining")
	legacyReset     = http.CanonicalHeaderKey("X-RateLimit-Reset")
	ietfPolicy      = http.CanonicalHeaderKey("RateLimit-Policy")
	ietfLimit       = http.CanonicalHeaderKey("RateLimit")
)

func setLegacy(h http.Header, d admit.Decision) {
	h[legacyLimit] = []string{strconv.FormatInt(int64(d.LimitUnits), 10)}
	if counted(d) {
		s := stateOf(d)
		h[legacyRemaining] = []string{strconv.FormatInt(int64(d.Remaining), 10)}
		h[legacyReset] = []string{strconv.FormatInt(seconds(s.Wait()), 10)}
	}
}

// stateOf returns the state of the limit that decided.
func stateOf(d admit.Decision) admit.LimitState {
	return admit.LimitState{Limit: d.Limit, LimitUnits: d.LimitUnits, Window: d.Window,
		Counted: counted(d), Admits: d.Allowed || d.RetryAfter == 0, Remaining: d.Remaining,
		ResetAfter: d.ResetAfter, RetryAfter: d.RetryAfter, Share: d.Share}
}

func setIETF(h http.Header, d admit.Decision) {
	all := d.Limits
	if len(all) < 2 {
		all = []admit.LimitState{stateOf(d)}
	}
	var policies, limits fields
	var named []string
	for i := range all {
		s := &all[i]
		if slices.Contains(named, s.Limit) { // entries of one name of several documents
			continue
		}
		named = append(named, s.Limit)
		policies = policies.item(s.Limit).param("q", int64(s.LimitUnits))
		if s.Window >= time.Second && s.Window%time.Second == 0 {
			policies = policies.param("w", int64(s.Window/time.Second))
		}
		if s.Counted {
			policies = policies.param("quotad-share", int64(s.Share))
			limits = limits.item(s.Limit).param("r", int64(min(s.Remaining, s.LimitUnits)))
			if t := seconds(s.Wait()); t > 0 {
				limits = limits.param("t", t)
			}
		}
		if s.Degraded || d.Degraded && s.Limit == d.Limit {
			policies = append(policies, ";quotad-degraded"...)
		}
	}
	h[ietfPolicy] = []string{string(policies)}
	if len(limits) > 0 {
		h[ietfLimit] = []string{string(limits)}
	}
}

// fields is a list of RFC 9651: items with parameters.
type fields []byte

// item begins an item that is the name of a limit, which needs no escapes in a string.
func (f fields) item(name string) fields {
	if len(f) > 0 {
		f = append(f, ", "...)
	}
	return append(append(append(f, '"'), name...), '"')
}

// param adds a parameter to the last item.
func (f fields) param(key string, value int64) fields {
	return strconv.AppendInt(append(append(append(f, ';'), key...), '='), value, 10)
}

// setRetryAfter tells a denied caller when to come again, if that is known.
func setRetryAfter(h http.Header, d admit.Decision) {
	if d.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(seconds(d.RetryAfter), 10))
	}
}
