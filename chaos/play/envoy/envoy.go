package envoy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ReportEvery is the time between reports, which cannot be configured.
const ReportEvery = 5 * time.Second

// Config is what the filter of an Envoy is configured with.
type Config struct {
	Domain string
	// NoAssignment decides requests of a bucket id without an assignment. nil: all are denied.
	NoAssignment *typev3.RateLimitStrategy
	// Expired decides them for ExpiredFor after an assignment has ended. nil: NoAssignment does.
	Expired    *typev3.RateLimitStrategy
	ExpiredFor time.Duration
	// Carries says that a token bucket in place of another one begins with the same part of its
	// tokens, as in Envoy 1.40, and not full, as before. Full is the worse of the two.
	Carries bool
}

// Envoy is one Envoy. Times are those since any one moment by its clock, above 0. Not safe for
// concurrent use.
type Envoy struct {
	config  Config
	buckets map[string]*bucket
	next    time.Duration // of the timer of reports; 0: it has not begun
	// Rebuilt is how many token buckets began anew, and Faults says what a server did wrong.
	Rebuilt int
	Faults  []string
}

// bucket is what an Envoy has of one bucket id.
type bucket struct {
	id              map[string]string
	strategy        *typev3.RateLimitStrategy // nil: NoAssignment decides
	tokens          *tokens                   // of strategy, if that is a token bucket
	ends            time.Duration
	fallback        bool // strategy is Expired
	allowed, denied uint64
	reported        time.Duration
}

// tokens is a token bucket, refilled without steps.
type tokens struct {
	most, rate, left float64
	at               time.Duration
}

// New returns an Envoy that has seen no request.
func New(c Config) *Envoy {
	return &Envoy{config: c, buckets: map[string]*bucket{}}
}

// keyOf returns a text that is another one for each bucket id.
func keyOf(id map[string]string) string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(id)) {
		fmt.Fprintf(&key, "%q:%q ", name, id[name])
	}
	return key.String()
}

// Request decides a request of a bucket id. report is what is to be sent at once; nil: nothing.
func (e *Envoy) Request(now time.Duration, id map[string]string) (allowed bool,
	report *rlqsv3.RateLimitQuotaUsageReports) {
	e.expire(now)
	b := e.buckets[keyOf(id)]
	first := b == nil
	if first {
		b = &bucket{id: maps.Clone(id), reported: now}
		e.buckets[keyOf(id)] = b
	}
	strategy := b.strategy
	if strategy == nil {
		strategy = e.config.NoAssignment
	}
	if allowed = b.admits(now, strategy); allowed {
		b.allowed++
	} else {
		b.denied++
	}
	if e.next == 0 {
		e.next = now + ReportEvery
	}
	if first {
		return allowed, e.report(now, b)
	}
	return allowed, nil
}

// admits reports whether a strategy admits a request.
func (b *bucket) admits(now time.Duration, s *typev3.RateLimitStrategy) bool {
	switch {
	case s.GetTokenBucket() != nil && b.tokens != nil:
		return b.tokens.take(now)
	case s == nil:
		return false
	}
	// A token bucket of NoAssignment is not kept: every request finds a new one.
	return s.GetTokenBucket().GetMaxTokens() > 0 ||
		s.GetTokenBucket() == nil && s.GetBlanketRule() == typev3.RateLimitStrategy_ALLOW_ALL
}

func (t *tokens) fill(now time.Duration) {
	t.left = min(t.left+t.rate*(now-t.at).Seconds(), t.most)
	t.at = now
}

func (t *tokens) take(now time.Duration) bool {
	t.fill(now)
	if t.left < 1 {
		return false
	}
	t.left--
	return true
}

// Due returns when the timer of reports fires next; 0: it has not begun.
func (e *Envoy) Due() time.Duration { return e.next }

// Tick is to be called when Due says so. It returns the report of all bucket ids: their counters
// begin anew, whether it is sent or not.
func (e *Envoy) Tick(now time.Duration) *rlqsv3.RateLimitQuotaUsageReports {
	e.expire(now)
	e.next = now + ReportEvery
	all := make([]*bucket, 0, len(e.buckets))
	for _, key := range slices.Sorted(maps.Keys(e.buckets)) {
		all = append(all, e.buckets[key])
	}
	return e.report(now, all...)
}

// report takes the counters of buckets.
func (e *Envoy) report(now time.Duration, all ...*bucket) *rlqsv3.RateLimitQuotaUsageReports {
	m := &rlqsv3.RateLimitQuotaUsageReports{Domain: e.config.Domain}
	for _, b := range all {
		m.BucketQuotaUsages = append(m.BucketQuotaUsages,
			&rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage{
				BucketId:    &rlqsv3.BucketId{Bucket: b.id},
				TimeElapsed: &durationpb.Duration{Seconds: int64((now - b.reported) / time.Second)},

				NumRequestsAllowed: b.allowed, NumRequestsDenied: b.denied})
		b.allowed, b.denied, b.reported = 0, 0, now
	}
	return m
}

// Received takes in what the server sent.
func (e *Envoy) Received(now time.Duration, m *rlqsv3.RateLimitQuotaResponse) {
	e.expire(now)
	for _, action := range m.GetBucketAction() {
		id := action.GetBucketId().GetBucket()
		b := e.buckets[keyOf(id)]
		switch {
		case len(id) == 0:
			e.fault("an action without a bucket id")
		case b == nil:
			e.fault("an action for a bucket id that was not reported")
		case action.GetAbandonAction() != nil:
			delete(e.buckets, keyOf(id))
		case action.GetQuotaAssignmentAction() != nil:
			e.assigned(now, b, action.GetQuotaAssignmentAction())
		default: // Envoy takes it for an assignment of nothing that is over at once
			e.fault("an action that is neither an assignment nor an abandonment")
			b.strategy, b.tokens, b.fallback = &typev3.RateLimitStrategy{}, nil, false
			b.ends = now
			e.expire(now)
		}
	}
}

type assignment = rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction

// assigned takes in an assignment.
func (e *Envoy) assigned(now time.Duration, b *bucket, a *assignment) {
	s := a.GetRateLimitStrategy()
	switch {
	case s.GetTokenBucket() != nil:
		if !same(b.strategy.GetTokenBucket(), s.GetTokenBucket()) || b.tokens == nil {
			e.rebuild(now, b, s.GetTokenBucket())
		}
	case s.GetRequestsPerTimeUnit() != nil || s.GetStrategy() == nil:
		e.fault("a strategy that Envoy passes over")
		return
	default:
		b.tokens = nil
	}
	ttl := time.Duration(a.GetAssignmentTimeToLive().GetSeconds()) * time.Second
	if ttl <= 0 {
		e.fault("a time to live of no whole second")
	}
	b.strategy, b.fallback, b.ends = s, false, now+ttl
}

// rebuild gives a bucket id a new token bucket.
func (e *Envoy) rebuild(now time.Duration, b *bucket, t *typev3.TokenBucket) {
	seconds := t.GetFillInterval().GetSeconds()
	if seconds == 0 {
		e.fault("a fill interval of no whole second, by which Envoy divides")
		seconds = 1
	}
	e.Rebuilt++
	most := float64(t.GetMaxTokens())
	left := most
	if e.config.Carries && b.tokens != nil {
		b.tokens.fill(now)
		left = math.Floor(most * (b.tokens.left / b.tokens.most))
	}
	b.tokens = &tokens{most: most, left: left,
		rate: float64(t.GetTokensPerFill().GetValue()) / float64(seconds), at: now}
}

// same reports whether Envoy takes two token buckets for the same.
func same(a, b *typev3.TokenBucket) bool {
	return a != nil && a.GetMaxTokens() == b.GetMaxTokens() &&
		a.GetTokensPerFill().GetValue() == b.GetTokensPerFill().GetValue() &&
		a.GetFillInterval().GetNanos() == b.GetFillInterval().GetNanos()
}

// expire ends what is over.
func (e *Envoy) expire(now time.Duration) {
	for _, b := range e.buckets {
		for b.strategy != nil && b.ends <= now {
			if b.fallback || e.config.Expired == nil {
				b.strategy, b.tokens, b.fallback = nil, nil, false
				continue
			}
			if t := e.config.Expired.GetTokenBucket(); t == nil {
				b.tokens = nil
			} else if !same(b.strategy.GetTokenBucket(), t) {
				e.rebuild(b.ends, b, t)
			}
			b.strategy, b.fallback, b.ends = e.config.Expired, true, b.ends+e.config.ExpiredFor
		}
	}
}

// Has reports whether a bucket id has an assignment, and its tokens a second and at most.
func (e *Envoy) Has(now time.Duration, id map[string]string) (rate, most float64, assigned bool) {
	e.expire(now)
	b := e.buckets[keyOf(id)]
	if b == nil || b.strategy == nil || b.fallback {
		return 0, 0, false
	}
	if b.tokens != nil {
		rate, most = b.tokens.rate, b.tokens.most
	}
	return rate, most, true
}

func (e *Envoy) fault(what string) {
	if len(e.Faults) < 100 && !slices.Contains(e.Faults, what) {
		e.Faults = append(e.Faults, what)
	}
}
