//go:build !race

package reference

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Habit is how a server charges.
type Habit string

// The habits of servers.
const (
	// Charged charges each descriptor, whether it is denied or not. So envoyproxy/ratelimit does.
	Charged Habit = "charged"
	// Apart decides each descriptor alone, in their order, and charges those that are not denied. A
	// shadow limit without room is not charged either. A descriptor that costs 0 asks: it is denied
	// where nothing is left. So does one with is_negative_hits, which Charged charges.
	Apart Habit = "apart"
	// Always is Apart with charge: always of every limit: a cost is charged whether it is denied or
	// not.
	Always Habit = "always"
	// Together charges all descriptors, or none. Those of one count are one, and cost the most that
	// any of them does. A shadow limit without room, and a limit in quota mode without room beside
	// one that has some, denies nothing and is not charged.
	Together Habit = "together"
)

// Server answers requests. It is not safe for concurrent use.
type Server struct {
	configuration *Configuration
	habit         Habit
	counts        map[string]uint64 // by domain, entries and beginning of the window
}

// NewServer returns a server without counts.
func NewServer(c *Configuration, h Habit) *Server {
	return &Server{configuration: c, habit: h, counts: map[string]uint64{}}
}

// asked is one descriptor of a request.
type asked struct {
	limit     *Limit // nil: none applies
	unlimited bool
	silent    bool   // nothing is told of its metadata
	entries   string // of domain and entries, the beginning of the key of its count
	count     string // the key of its count
	addend    uint64
	room      bool // the limit had room for it
	left      uint64
}

// seconds are the lengths of units.
var seconds = map[rlsv3.RateLimitResponse_RateLimit_Unit]int64{
	rlsv3.RateLimitResponse_RateLimit_SECOND: 1,
	rlsv3.RateLimitResponse_RateLimit_MINUTE: 60,
	rlsv3.RateLimitResponse_RateLimit_HOUR:   60 * 60,
	rlsv3.RateLimitResponse_RateLimit_DAY:    24 * 60 * 60,
	rlsv3.RateLimitResponse_RateLimit_WEEK:   7 * 24 * 60 * 60,
	rlsv3.RateLimitResponse_RateLimit_MONTH:  30 * 24 * 60 * 60,
	rlsv3.RateLimitResponse_RateLimit_YEAR:   365 * 24 * 60 * 60,
}

// ShouldRateLimit answers a request at a time after 1970. The statuses are as envoyproxy/ratelimit
// has them: current_limit is that of the limit that applies, its name is empty if the file gives
// none; limit_remaining is 0 of a limit without room, also in shadow mode, and otherwise what is
// left after the request; duration_until_reset counts from the beginning of the second.
//
// Two errors are those of envoyproxy/ratelimit: no domain, and no descriptors.
func (s *Server) ShouldRateLimit(at time.Time, r *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse,
	error) {
	if r.GetDomain() == "" {
		return nil, errors.New("rate limit domain must not be empty")
	}
	if len(r.GetDescriptors()) == 0 {
		return nil, errors.New("rate limit descriptor list must not be empty")
	}
	return s.answer(at.Unix(), r, s.decide(at, r)), nil
}

// decide decides a request that is valid.
func (s *Server) decide(at time.Time, r *rlsv3.RateLimitRequest) []*asked {
	all := s.match(at.Unix(), r)
	if s.habit == Together {
		s.decideTogether(all)
	} else {
		s.decideEach(all)
	}
	return all
}

// match finds the limits of a request, without those that others of the request replace.
func (s *Server) match(now int64, r *rlsv3.RateLimitRequest) []*asked {
	all, replaced := make([]*asked, len(r.GetDescriptors())), map[string]bool{}
	for i, d := range r.GetDescriptors() {
		limit, entries, forgets := s.configuration.Match(r.GetDomain(), d)
		all[i] = &asked{limit: limit, silent: forgets && s.habit == Charged, addend: max(1, uint64(r.GetHitsAddend()))}
		if d.GetHitsAddend() != nil {
			all[i].addend = d.GetHitsAddend().GetValue()
		}
		if d.GetIsNegativeHits() && s.habit != Charged {
			all[i].addend = 0
		}
		if limit == nil {
			continue
		}
		for _, name := range limit.Replaces {
			replaced[name] = true
		}
		if limit.Unlimited {
			all[i].limit, all[i].unlimited = nil, true
			continue
		}
		all[i].entries = r.GetDomain() + "_" + entries
		all[i].count = all[i].in(now)
	}
	for _, a := range all {
		if a.limit != nil && a.limit.Name != "" && replaced[a.limit.Name] {
			a.limit = nil
		}
	}
	return all
}

// in returns the key of its count at a time.
func (a *asked) in(now int64) string {
	unit := seconds[a.limit.Unit]
	return a.entries + strconv.FormatInt(now/unit*unit, 10)
}

// decideEach decides the descriptors one after the other, but for quotad's habits those that ask
// first.
func (s *Server) decideEach(all []*asked) {
	all = slices.Clone(all)
	if s.habit != Charged {
		slices.SortStableFunc(all, func(a, b *asked) int { return cmp.Compare(min(a.addend, 1), min(b.addend, 1)) })
	}
	for _, a := range all {
		if a.limit == nil {
			continue
		}
		after := s.counts[a.count] + a.addend
		a.room = s.fits(after, a.addend, a.limit)
		if a.room {
			a.left = uint64(a.limit.Requests) - after
		}
		if a.room || s.habit == Charged || s.habit == Always {
			s.counts[a.count] = after
		}
	}
}

// fits reports whether a limit has room for a cost, after which so much is used. A cost of 0 is a
// question of whether anything is left, but for Charged, for which it is a cost as any other.
func (s *Server) fits(after, cost uint64, l *Limit) bool {
	if cost == 0 && s.habit != Charged {
		return after < uint64(l.Requests)
	}
	return after <= uint64(l.Requests)
}

// decideTogether decides the descriptors as one.
func (s *Server) decideTogether(all []*asked) {
	costs := map[string]uint64{}
	for _, a := range all {
		if a.limit != nil {
			costs[a.count] = max(costs[a.count], a.addend)
		}
	}
	for _, a := range all {
		a.room = a.limit != nil && s.fits(s.counts[a.count]+costs[a.count], costs[a.count], a.limit)
	}
	if !denied(all) {
		for _, a := range all {
			if a.room {
				s.counts[a.count] += costs[a.count]
				delete(costs, a.count)
			}
		}
	}
	for _, a := range all {
		if a.room {
			a.left = uint64(a.limit.Requests) - s.counts[a.count]
		}
	}
}

// denied reports whether a request is denied: by a limit that has no room, or by those in quota mode
// if none of them has.
func denied(all []*asked) bool {
	quotas, full := 0, 0
	for _, a := range all {
		switch {
		case a.limit == nil:
		case a.limit.Quota:
			quotas++
			if !a.room && !a.limit.Shadow {
				full++
			}
		case !a.room && !a.limit.Shadow:
			return true
		}
	}
	return quotas > 0 && full == quotas
}

func (s *Server) answer(now int64, r *rlsv3.RateLimitRequest, all []*asked) *rlsv3.RateLimitResponse {
	response := &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OK}
	if denied(all) {
		response.OverallCode = rlsv3.RateLimitResponse_OVER_LIMIT
	}
	for _, a := range all {
		status := &rlsv3.RateLimitResponse_DescriptorStatus{Code: rlsv3.RateLimitResponse_OK}
		if a.unlimited {
			status.LimitRemaining = math.MaxUint32
		}
		if a.limit != nil {
			if !a.room && !a.limit.Shadow {
				status.Code = rlsv3.RateLimitResponse_OVER_LIMIT
			}
			status.CurrentLimit = &rlsv3.RateLimitResponse_RateLimit{Name: a.limit.Name,
				RequestsPerUnit: a.limit.Requests, Unit: a.limit.Unit}
			status.LimitRemaining = uint32(a.left)
			unit := seconds[a.limit.Unit]
			status.DurationUntilReset = &durationpb.Duration{Seconds: unit - now%unit}
		}
		response.Statuses = append(response.Statuses, status)
	}
	response.ResponseHeadersToAdd = headers(all, response.Statuses)
	if s.habit == Charged || s.configuration.tells[r.GetDomain()] {
		response.DynamicMetadata = s.dynamic(r, all, response.Statuses)
	}
	return response
}

// headers tells of the descriptor with the least left, the first of several, or of the last one that
// denies the request by itself. envoyproxy/ratelimit lets the names be chosen.
func headers(all []*asked, statuses []*rlsv3.RateLimitResponse_DescriptorStatus) []*corev3.HeaderValue {
	var least, denies *rlsv3.RateLimitResponse_DescriptorStatus
	for i, status := range statuses {
		if status.CurrentLimit == nil {
			continue
		}
		if least == nil || status.LimitRemaining < least.LimitRemaining {
			least = status
		}
		if status.Code == rlsv3.RateLimitResponse_OVER_LIMIT && !all[i].limit.Quota {
			denies = status
		}
	}
	says := cmp.Or(denies, least)
	if says == nil {
		return nil
	}
	return []*corev3.HeaderValue{
		{Key: "x-ratelimit-limit", Value: fmt.Sprint(says.CurrentLimit.RequestsPerUnit)},
		{Key: "x-ratelimit-remaining", Value: fmt.Sprint(says.LimitRemaining)},
		{Key: "x-ratelimit-reset", Value: fmt.Sprint(says.DurationUntilReset.Seconds)},
	}
}
