package callers

import (
	"net/http"
	"strconv"
	"time"

	"github.com/quotad/quotad/region/base/ratelimit"
	"github.com/quotad/quotad/region/decide/admit"
)

// Headers says which headers an answer has beside Retry-After.
type Headers string

// Which headers an answer has. The empty text is BothHeaders.
const (
	// IETFHeaders are RateLimit and RateLimit-Policy: of each limit that applied an item, by its
	// name. They say until when the request may not come again or, if it was admitted, until the
	// limit is whole. See package ratelimit.
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

// set sets the headers about a decision. maxRate is Options.MaxRate.
func (style Headers) set(h http.Header, d admit.Decision, maxRate int) {
	if d.Limit == "" {
		return
	}
	if style.has(LegacyHeaders) {
		setLegacy(h, d)
	}
	if style.has(IETFHeaders) {
		setIETF(h, d, maxRate)
	}
}

// Names of headers as net/http writes them.
var (
	legacyLimit     = http.CanonicalHeaderKey("X-RateLimit-Limit")
	legacyRemaining = http.CanonicalHeaderKey("X-RateLimit-Remaining")
	legacyReset     = http.CanonicalHeaderKey("X-RateLimit-Reset")
)

func setLegacy(h http.Header, d admit.Decision) {
	h[legacyLimit] = []string{strconv.FormatInt(int64(d.LimitUnits), 10)}
	if counted(d) {
		s := stateOf(d)
		h[legacyRemaining] = []string{strconv.FormatInt(int64(d.Remaining), 10)}
		h[legacyReset] = []string{strconv.FormatInt(ratelimit.RoundUp(s.Wait(), time.Second), 10)}
	}
}

// stateOf returns the state of the limit that decided.
func stateOf(d admit.Decision) admit.LimitState {
	return admit.LimitState{Limit: d.Limit, LimitUnits: d.LimitUnits, Window: d.Window,
		Unit: d.Unit, Counted: counted(d), Admits: d.Allowed || d.RetryAfter == 0, Remaining: d.Remaining,
		ResetAfter: d.ResetAfter, RetryAfter: d.RetryAfter, Share: d.Share}
}

func setIETF(h http.Header, d admit.Decision, maxRate int) {
	all := d.Limits
	if len(all) < 2 {
		all = []admit.LimitState{stateOf(d)}
	}
	fields := ratelimit.Fields{MaxRate: int64(maxRate)}
	for i := range all {
		s := &all[i]
		fields.Add(ratelimit.Limit{Name: s.Limit, Units: int64(s.LimitUnits), Unit: s.Unit, Window: s.Window,
			Counted: s.Counted, Left: int64(s.Remaining), Until: s.Wait(), Share: int64(s.Share),
			Degraded: s.Degraded || d.Degraded && s.Limit == d.Limit})
	}
	fields.Set(h)
}

// setRetryAfter tells a denied caller when to come again, if that is known.
func setRetryAfter(h http.Header, d admit.Decision) {
	if d.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(ratelimit.RoundUp(d.RetryAfter, time.Second), 10))
	}
}
