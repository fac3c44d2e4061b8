package callers

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/calendar"
	"github.com/quotad/quotad/region/decide/admit"
)

type (
	descriptorStatus = envoy.RateLimitResponse_DescriptorStatus
	rateLimit        = envoy.RateLimitResponse_RateLimit
	rateLimitUnit    = envoy.RateLimitResponse_RateLimit_Unit
)

const (
	passed    = envoy.RateLimitResponse_OK
	overLimit = envoy.RateLimitResponse_OVER_LIMIT
)

// rlsReply is an answer to Envoy in the making: a status for each descriptor, and the code of all.
type rlsReply struct {
	response *envoy.RateLimitResponse
	// decisions are those that the answer is made of, if it keeps them for headers.
	decisions []admit.Decision
	keeps     bool
}

func newRLSReply(descriptors int, keeps bool) *rlsReply {
	return &rlsReply{keeps: keeps, response: &envoy.RateLimitResponse{OverallCode: passed,
		Statuses: make([]*descriptorStatus, descriptors)}}
}

// whole returns the answer. A descriptor of which nothing was said passes.
func (a *rlsReply) whole() *envoy.RateLimitResponse {
	for i, s := range a.response.Statuses {
		if s == nil {
			a.response.Statuses[i] = &descriptorStatus{Code: passed}
		}
	}
	return a.response
}

// denied reports whether the request is denied by what was decided so far.
func (a *rlsReply) denied() bool { return a.response.OverallCode == overLimit }

// passes says that a descriptor was not asked about in order to be admitted.
func (a *rlsReply) passes(place int) {
	a.response.Statuses[place].Code, a.response.OverallCode = passed, passed
	for _, s := range a.response.Statuses {
		if s.GetCode() == overLimit {
			a.response.OverallCode = overLimit
		}
	}
}

// take takes in one decision on the descriptors at some places.
func (a *rlsReply) take(places []int, d admit.Decision) {
	if a.keeps {
		a.decisions = append(a.decisions, d)
	}
	if !d.Allowed {
		a.response.OverallCode = overLimit
	}
	for n, i := range places {
		if n < len(d.Met) {
			a.response.Statuses[i] = statusOf(d, d.Met[n])
		}
	}
}

// refuse denies the descriptors at some places, of which nothing is known.
func (a *rlsReply) refuse(places []int) {
	a.response.OverallCode = overLimit
	for _, i := range places {
		a.response.Statuses[i] = &descriptorStatus{Code: overLimit, CurrentLimit: &rateLimit{}}
	}
}

// takeApart takes in a decision for each of the descriptors at some places. Those that only
// alternative limits deny make up a denial together.
func (a *rlsReply) takeApart(places []int, all []admit.Decision) {
	alternatives, full := 0, 0
	for n, d := range all {
		before := a.response.OverallCode
		a.take(places[n:n+1], d)
		if alternative(d) {
			alternatives++
			if !d.Allowed {
				full++
				a.response.OverallCode = before
			}
		}
	}
	if alternatives > 0 && full == alternatives {
		a.response.OverallCode = overLimit
	}
}

// alternative reports whether the limits of a decision deny only together with others.
func alternative(d admit.Decision) bool {
	for _, s := range d.Limits {
		if !s.Alternative {
			return false
		}
	}
	return len(d.Limits) > 0
}

// statusOf returns the status of one descriptor. Of a limit without room for it nothing is left, as
// envoyproxy/ratelimit says, though there may be room for less.
func statusOf(d admit.Decision, met admit.Met) *descriptorStatus {
	if met.Denied {
		return &descriptorStatus{Code: overLimit, CurrentLimit: &rateLimit{}}
	}
	if met.Unlimited {
		return &descriptorStatus{Code: passed, LimitRemaining: maxCount}
	}
	s, found := speaks(d.Limits, met.Limits)
	if !found {
		code := passed
		if d.Reason == admit.NoLimit && !d.Allowed && !met.Exempt {
			code = overLimit
		}
		return &descriptorStatus{Code: code}
	}
	status := &descriptorStatus{Code: passed}
	if !s.Admits && !s.Shadow {
		status.Code = overLimit
	}
	if s.Counted || status.Code == overLimit {
		status.CurrentLimit = limitOf(s)
		if s.Admits {
			status.LimitRemaining = count(s.Remaining)
		}
		status.DurationUntilReset = durationpb.New(s.Wait())
	}
	return status
}

// speaks returns the limit that says most about a descriptor: of those that deny it the one that
// does longest, else the one with least left. Shadow limits speak only if there are no others.
func speaks(all []admit.LimitState, places []int) (s admit.LimitState, found bool) {
	for _, i := range places {
		if i < len(all) && (!found || saysMore(all[i], s)) {
			s, found = all[i], true
		}
	}
	return s, found
}

func saysMore(a, b admit.LimitState) bool {
	switch {
	case a.Shadow != b.Shadow:
		return b.Shadow
	case a.Admits != b.Admits:
		return !a.Admits
	case !a.Admits:
		return b.RetryAfter >= 0 && (a.RetryAfter < 0 || a.RetryAfter > b.RetryAfter)
	case a.Counted != b.Counted:
		return a.Counted
	}
	return a.Remaining < b.Remaining
}

// units are what Envoy can be told of the length of a window, the longest first.
var units = []struct {
	unit   rateLimitUnit
	length time.Duration
}{
	{envoy.RateLimitResponse_RateLimit_YEAR, 365 * 24 * time.Hour},
	{envoy.RateLimitResponse_RateLimit_MONTH, 30 * 24 * time.Hour},
	{envoy.RateLimitResponse_RateLimit_WEEK, 7 * 24 * time.Hour},
	{envoy.RateLimitResponse_RateLimit_DAY, 24 * time.Hour},
	{envoy.RateLimitResponse_RateLimit_HOUR, time.Hour},
	{envoy.RateLimitResponse_RateLimit_MINUTE, time.Minute},
	{envoy.RateLimitResponse_RateLimit_SECOND, time.Second},
}

// periods are the units of windows by the calendar.
var periods = map[calendar.Unit]rateLimitUnit{
	calendar.Day:   envoy.RateLimitResponse_RateLimit_DAY,
	calendar.Week:  envoy.RateLimitResponse_RateLimit_WEEK,
	calendar.Month: envoy.RateLimitResponse_RateLimit_MONTH,
	calendar.Year:  envoy.RateLimitResponse_RateLimit_YEAR,
}

// limitOf returns a limit as Envoy can be told of it. A window that is no number of whole seconds
// has the unit UNKNOWN.
func limitOf(s admit.LimitState) *rateLimit {
	l := &rateLimit{Name: s.Alias, RequestsPerUnit: count(s.LimitUnits)}
	if s.Period != "" {
		l.Unit = periods[s.Period.Unit()]
		return l
	}
	for _, u := range units {
		if n := s.Window / u.length; n > 0 && s.Window%u.length == 0 {
			if l.Unit = u.unit; n > 1 {
				l.UnitMultiplier = wrapperspb.UInt32(uint32(n))
			}
			break
		}
	}
	return l
}

// headers returns the headers of the decision that denies, or else of the one with least left.
func (a *rlsReply) headers(style Headers) (all []*corev3.HeaderValue) {
	var says *admit.Decision
	for i := range a.decisions {
		d := &a.decisions[i]
		if says == nil || says.Allowed && (!d.Allowed || d.Limit != "" && (says.Limit == "" || d.Remaining < says.Remaining)) {
			says = d
		}
	}
	if says == nil {
		return nil
	}
	h := http.Header{}
	style.set(h, *says)
	if !says.Allowed {
		setRetryAfter(h, *says)
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		all = append(all, &corev3.HeaderValue{Key: strings.ToLower(name), Value: h.Get(name)})
	}
	return all
}
