package callers

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/calendar"
	"github.com/quotad/quotad/policy"
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
	least    *descriptorStatus // the first of those with least left; nil: none has a limit
	denies   *descriptorStatus // the last that denies by itself; nil: none does
	// told holds the metadata of what each descriptor met; nil: nothing of it is told.
	told [][]*policy.Metadata
}

func newRLSReply(descriptors int) *rlsReply {
	return &rlsReply{response: &envoy.RateLimitResponse{OverallCode: passed,
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

// take takes in what was decided.
func (a *rlsReply) take(all admit.ListsDecision) {
	if !all.Allowed {
		a.response.OverallCode = overLimit
	}
	if all.Tells != nil {
		a.told = make([][]*policy.Metadata, len(a.response.Statuses))
	}
	alternatives := make([]bool, len(a.response.Statuses))
	for n, d := range all.Decisions {
		for k, i := range all.Of[n] {
			if k < len(d.Met) {
				a.response.Statuses[i], alternatives[i] = statusOf(d, d.Met[k]), alternative(d, d.Met[k])
				a.meets(i, d, d.Met[k])
			}
		}
	}
	for i, s := range a.response.Statuses {
		a.weigh(s, alternatives[i])
	}
}

// weigh finds out of which descriptor the headers tell. It is called in the order of the request.
func (a *rlsReply) weigh(s *descriptorStatus, alternative bool) {
	if s.GetCurrentLimit().GetUnit() == 0 && s.GetCurrentLimit().GetRequestsPerUnit() == 0 {
		return
	}
	if a.least == nil || s.LimitRemaining < a.least.LimitRemaining {
		a.least = s
	}
	if s.Code == overLimit && !alternative {
		a.denies = s
	}
}

// alternative reports whether an alternative limit speaks of a descriptor.
func alternative(d admit.Decision, met admit.Met) bool {
	if met.Exempt != nil {
		return met.Exempt.Alternative
	}
	s, _ := speaks(d.Limits, met.Limits)
	return s.Alternative
}

// refuse returns the answer that denies all descriptors, of which nothing is known.
func (a *rlsReply) refuse() *envoy.RateLimitResponse {
	a.response.OverallCode = overLimit
	for i := range a.response.Statuses {
		a.response.Statuses[i] = &descriptorStatus{Code: overLimit, CurrentLimit: &rateLimit{}}
	}
	return a.response
}

// statusOf returns the status of one descriptor. Of a limit without room for it nothing is left, as
// envoyproxy/ratelimit says, though there may be room for less.
func statusOf(d admit.Decision, met admit.Met) *descriptorStatus {
	if met.Exempt != nil && !met.Exempt.Unlimited && (met.Exempt.Deny || met.Exempt.Window > 0) {
		return zeroOf(met.Exempt, time.Now())
	}
	if met.Exempt != nil && met.Exempt.Unlimited {
		return &descriptorStatus{Code: passed, LimitRemaining: maxCount}
	}
	s, found := speaks(d.Limits, met.Limits)
	if !found {
		code := passed
		if d.Reason == admit.NoLimit && !d.Allowed && met.Exempt == nil && !met.Replaced {
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
		status.DurationUntilReset = wholeSeconds(resetOf(s))
	}
	return status
}

// zeroOf returns the status of a descriptor that meets an exemption which denies, or is told of as a
// limit of 0. The window is that of the present moment.
func zeroOf(e *policy.Exemption, now time.Time) *descriptorStatus {
	status := &descriptorStatus{Code: passed, CurrentLimit: &rateLimit{Name: e.Alias}}
	if e.Deny {
		status.Code = overLimit
	}
	if e.Window > 0 {
		setUnit(status.CurrentLimit, e.Window)
		status.DurationUntilReset = wholeSeconds(e.Window - time.Duration(now.UnixNano())%e.Window)
	}
	return status
}

// resetOf returns when a denied descriptor may come again, if that is known, and otherwise when a
// fixed_window ends, or another limit is whole.
func resetOf(s admit.LimitState) time.Duration {
	if !s.Admits && s.RetryAfter > 0 {
		return s.RetryAfter
	}
	return max(s.Ends, s.ResetAfter)
}

// wholeSeconds rounds up: Envoy cuts off parts of a second, and would tell clients to come too soon.
func wholeSeconds(d time.Duration) *durationpb.Duration {
	return durationpb.New((max(d, 0) + time.Second - 1).Truncate(time.Second))
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
	setUnit(l, s.Window)
	return l
}

// setUnit tells of the length of a window.
func setUnit(l *rateLimit, window time.Duration) {
	for _, u := range units {
		if n := window / u.length; n > 0 && window%u.length == 0 {
			if l.Unit = u.unit; n > 1 {
				l.UnitMultiplier = wrapperspb.UInt32(uint32(n))
			}
			return
		}
	}
}

// headers returns the headers of the last decision that denies, or else of the one with least left. A
// denial that others spare says nothing. X-RateLimit tells what the status of one descriptor does, as
// with envoyproxy/ratelimit: the last that denies, or else the first with least left.
func (a *rlsReply) headers(of admit.ListsDecision, style Headers, maxRate int) (all []*corev3.HeaderValue) {
	var says *admit.Decision
	for i := range of.Decisions {
		d := &of.Decisions[i]
		switch {
		case of.Spared[i]:
		case says == nil, !d.Allowed,
			says.Allowed && d.Limit != "" && (says.Limit == "" || d.Remaining < says.Remaining):
			says = d
		}
	}
	h := http.Header{}
	if says != nil {
		style.set(h, *says, maxRate)
		if !says.Allowed {
			setRetryAfter(h, *says)
		}
	}
	if s := cmp.Or(a.denies, a.least); s != nil && style.has(LegacyHeaders) {
		h[legacyLimit] = []string{strconv.FormatUint(uint64(s.CurrentLimit.RequestsPerUnit), 10)}
		h[legacyRemaining] = []string{strconv.FormatUint(uint64(s.LimitRemaining), 10)}
		h[legacyReset] = []string{strconv.FormatInt(s.DurationUntilReset.GetSeconds(), 10)}
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		all = append(all, &corev3.HeaderValue{Key: strings.ToLower(name), Value: h.Get(name)})
	}
	return all
}
