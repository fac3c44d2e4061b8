package callers

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"

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

func setLegacy(h http.Header, d admit.Decision) {
	h.Set("X-RateLimit-Limit", strconv.FormatInt(int64(d.LimitUnits), 10))
	if counted(d) {
		s := stateOf(d)
		h.Set("X-RateLimit-Remaining", strconv.FormatInt(int64(d.Remaining), 10))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(seconds(s.Wait()), 10))
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
	var policies, limits httpsfv.List
	var named []string
	for _, s := range all {
		if slices.Contains(named, s.Limit) { // entries of one name of several documents
			continue
		}
		named = append(named, s.Limit)
		policy := httpsfv.NewItem(s.Limit)
		policy.Params.Add("q", int64(s.LimitUnits))
		if s.Window >= time.Second && s.Window%time.Second == 0 {
			policy.Params.Add("w", int64(s.Window/time.Second))
		}
		if s.Counted {
			policy.Params.Add("quotad-share", int64(s.Share))
			limit := httpsfv.NewItem(s.Limit)
			limit.Params.Add("r", int64(min(s.Remaining, s.LimitUnits)))
			if t := seconds(s.Wait()); t > 0 {
				limit.Params.Add("t", t)
			}
			limits = append(limits, limit)
		}
		if s.Degraded || d.Degraded && s.Limit == d.Limit {
			policy.Params.Add("quotad-degraded", true)
		}
		policies = append(policies, policy)
	}
	setList(h, "RateLimit-Policy", policies)
	setList(h, "RateLimit", limits)
}

// setList sets a header to a structured field, if there is anything in it.
func setList(h http.Header, name string, list httpsfv.List) {
	if len(list) == 0 {
		return
	}
	if text, err := httpsfv.Marshal(list); err == nil { // names of limits and numbers of 2^51 never fail
		h.Set(name, text)
	}
}

// setRetryAfter tells a denied caller when to come again, if that is known.
func setRetryAfter(h http.Header, d admit.Decision) {
	if d.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(seconds(d.RetryAfter), 10))
	}
}
