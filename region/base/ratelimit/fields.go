// Package ratelimit writes the HTTP fields RateLimit and RateLimit-Policy, as
// draft-ietf-httpapi-ratelimit-headers-11 has them. They are lists of RFC 9651, with an item for
// each limit, by its name.
package ratelimit

import (
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultMaxRate is the usual Fields.MaxRate: who follows it takes at least a tenth of the window
	// for the whole limit, such as 2.4 hours of a day.
	DefaultMaxRate = 10
	// MaxMaxRate is the largest Fields.MaxRate.
	MaxMaxRate = 1000
	// longWindow is the shortest window of which MaxRate bounds the rate.
	longWindow = 24 * time.Hour
	// maxInteger is the largest integer of a structured field (RFC 9651). Larger ones are sent as it.
	maxInteger = 999_999_999_999_999
)

// Names of the fields, as net/http writes them.
var (
	policyField = http.CanonicalHeaderKey("RateLimit-Policy")
	limitField  = http.CanonicalHeaderKey("RateLimit")
)

// Limit is what the fields say of one limit.
type Limit struct {
	Name   string
	Units  int64         // of a window, over all regions
	Unit   string        // what is counted, such as tokens; empty: it is not said
	Window time.Duration // 0: not known
	// Counted says that what follows is known.
	Counted bool
	Left    int64 // units left in this region
	// Until is when a denied request may come again, or else when the limit is whole.
	Until    time.Duration
	Share    int64 // units that this region holds; negative: not known
	Degraded bool  // another region of the limit does not answer
}

// Fields are the values of both fields. The zero value has no items.
type Fields struct {
	// MaxRate is how many times the average rate of a limit the fields may suggest, for a window of
	// a day or longer: r/t <= MaxRate q/w. 0: no bound.
	MaxRate int64

	policies, limits []byte
	named            []string
}

// Add adds an item about a limit, unless there is one of its name already, or its name cannot stand
// in a field.
//
// RateLimit-Policy says what stays the same from answer to answer, RateLimit what changes.
func (f *Fields) Add(l Limit) {
	if slices.Contains(f.named, l.Name) || !plain(l.Name) || !plain(l.Unit) {
		return
	}
	f.named = append(f.named, l.Name)
	f.policies = param(item(f.policies, l.Name), "q", l.Units)
	if l.Unit != "" {
		f.policies = quoted(append(f.policies, ";qu="...), l.Unit)
	}
	if l.Window >= time.Second && l.Window%time.Second == 0 {
		f.policies = param(f.policies, "w", int64(l.Window/time.Second))
	}
	if l.Counted {
		f.addLimit(l)
	}
}

func (f *Fields) addLimit(l Limit) {
	until := RoundUp(l.Until, time.Second)
	f.limits = param(item(f.limits, l.Name), "r", f.left(l, until))
	if until > 0 {
		f.limits = param(f.limits, "t", until)
	}
	if l.Share >= 0 {
		f.limits = param(f.limits, "quotad-share", l.Share)
	}
	if l.Degraded {
		f.limits = append(f.limits, ";quotad-degraded"...)
	}
}

// left returns what the field says is left of a limit: at most so much that a client which spends it
// evenly until then has MaxRate times the limit's average rate, but never none where some is left.
func (f *Fields) left(l Limit, until int64) int64 {
	left := min(l.Left, l.Units)
	rate, window := min(f.MaxRate, MaxMaxRate), int64(l.Window/time.Second)
	if rate <= 0 || l.Window < longWindow || until <= 0 || left <= 1 || rate*until >= window {
		return left
	}
	// rate until < window, so that the quotient is less than Units, and fits.
	high, low := bits.Mul64(uint64(l.Units), uint64(rate*until))
	most, _ := bits.Div64(high, low, uint64(window))
	return max(1, min(left, int64(most)))
}

// Set sets the fields that have items.
func (f *Fields) Set(h http.Header) {
	if len(f.policies) > 0 {
		h[policyField] = []string{string(f.policies)}
	}
	if len(f.limits) > 0 {
		h[limitField] = []string{string(f.limits)}
	}
}

// RoundUp returns a time in units, because a caller that waits less would be denied again.
func RoundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// item begins an item of a list.
func item(list []byte, name string) []byte {
	if len(list) > 0 {
		list = append(list, ", "...)
	}
	return quoted(list, name)
}

// param adds a parameter to the last item.
func param(list []byte, key string, value int64) []byte {
	list = append(append(append(list, ';'), key...), '=')
	return strconv.AppendInt(list, min(max(value, 0), maxInteger), 10)
}

// plain reports whether a text may be a string of a structured field, which has ASCII alone.
func plain(text string) bool {
	return strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// quoted appends a plain text as a string.
func quoted(list []byte, text string) []byte {
	list = append(list, '"')
	for _, c := range []byte(text) {
		if c == '"' || c == '\\' {
			list = append(list, '\\')
		}
		list = append(list, c)
	}
	return append(list, '"')
}
