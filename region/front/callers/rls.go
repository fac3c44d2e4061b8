package callers

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/audit"
)

// rls is envoy.service.ratelimit.v3.RateLimitService, which Envoy and the gateways built on it ask.
// Each descriptor of a request is a list of entries (policy.Limit.Entries). All descriptors are one
// decision, or each is one of its own: policy.DomainRules.Descriptors.
//
// A descriptor of no hits is asked about and charged nothing: its cost is known only afterwards, and
// comes in a request of its own, as Envoy sends it at the end of a stream. Of limits that say charge:
// always such hits are charged whole, whatever is left, and over limit as long as that is owed. One with is_negative_hits gives back
// what was charged last, to whomever, if the document allows it in its domain; else it is one of no
// hits. A limit that comes with a descriptor is ignored and counted: limits are in the limits document
// alone, or a client could choose its own.
type rls struct {
	envoy.UnimplementedRateLimitServiceServer
	node    Node
	options Options
	// ignored counts limits that came with descriptors, and unreturned the negative hits that their
	// domain does not allow.
	ignored, unreturned prometheus.Counter
	// tooMany counts requests that were denied because they meet too many limits.
	tooMany  prometheus.Counter
	metadata sentMetadata
}

func newRLS(node Node, o Options) *rls {
	return &rls{node: node, options: o, ignored: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "quotad_rls_ignored_limits_total",
		Help: "Limits that came with descriptors of Envoy's requests, and were ignored."}),
		unreturned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_rls_ignored_negative_hits_total",
			Help: "Descriptors of Envoy's requests that were to give back, in domains without negative_hits: give_back."}),
		tooMany: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_rls_too_many_limits_total",
			Help: "Requests of Envoy that were denied because they meet more limits than can be decided at once, or have more descriptors or entries: let fewer apply, or send fewer."})}
}

// ShouldRateLimit implements envoy.service.ratelimit.v3.RateLimitService.
func (s *rls) ShouldRateLimit(ctx context.Context,
	m *envoy.RateLimitRequest) (*envoy.RateLimitResponse, error) {
	r, err := s.limit(waiting(ctx), m, callerOf(ctx), 0)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return r, nil
}

// limit decides a request of a caller. wait is as admit.Request.Wait. The error is a
// *invalid.Field, a *roles.Refusal, or that of the node.
func (s *rls) limit(ctx context.Context, m *envoy.RateLimitRequest, caller string,
	wait time.Duration) (*envoy.RateLimitResponse, error) {
	if err := s.options.MayName(ctx, m.GetDomain()); err != nil {
		return nil, err
	}
	a := newRLSReply(len(m.GetDescriptors()))
	if tooMany(m) {
		s.tooMany.Inc()
		return a.refuse(), nil
	}
	q := admit.Request{Domain: m.GetDomain(), Caller: caller, Wait: wait, Lists: s.lists(m)}
	decided, err := s.node.CheckLists(ctx, q)
	if _, is := errors.AsType[admit.TooManyLimits](err); is {
		s.tooMany.Inc()
		return a.refuse(), nil
	}
	if err != nil {
		return nil, err
	}
	a.take(decided)
	for i, list := range q.Lists {
		if !list.Back {
			continue
		}
		if err := s.giveBack(ctx, q, i, decided.Replaced, a); err != nil {
			return nil, err
		}
	}
	if style := s.options.EnvoyHeaders; style != "" && style != NoHeaders {
		a.response.ResponseHeadersToAdd = a.headers(decided, style, s.options.MaxRate)
	}
	if decided.Tells != nil {
		a.response.DynamicMetadata = a.dynamic(m, s.metadata.all(decided.Tells))
	}
	return a.whole(), nil
}

// tooMany reports whether a request has more descriptors, or one of them more entries, than are
// decided. It is denied: an error Envoy would let pass, and whoever can choose descriptors would pass
// all limits.
func tooMany(m *envoy.RateLimitRequest) bool {
	return len(m.GetDescriptors()) > admit.MaxLists || slices.ContainsFunc(m.GetDescriptors(),
		func(d *ratelimit.RateLimitDescriptor) bool { return len(d.GetEntries()) > admit.MaxDescriptors })
}

// lists returns the descriptors of a request with what they cost, and counts what is ignored.
func (s *rls) lists(m *envoy.RateLimitRequest) []admit.List {
	all := make([]admit.List, 0, len(m.GetDescriptors()))
	returns := s.node.Document().Domain(m.GetDomain()).NegativeHits == policy.GiveBackHits
	for _, d := range m.GetDescriptors() {
		units := uint64(max(m.GetHitsAddend(), 1))
		if own := d.GetHitsAddend(); own != nil {
			units = own.GetValue()
		}
		// More than any limit is as much as that: it is denied, and no error that Envoy lets pass.
		list := admit.List{Cost: quantity.Units(min(units, 1<<51)),
			Entries: make([]policy.KeyValue, len(d.GetEntries()))}
		for n, e := range d.GetEntries() {
			list.Entries[n] = policy.KeyValue{Name: e.GetKey(), Value: e.GetValue()}
		}
		switch {
		case !d.GetIsNegativeHits() || units == 0:
		case returns:
			list.Back = true
		default:
			s.unreturned.Inc()
			list.Cost = 0
		}
		if d.GetLimit() != nil {
			s.ignored.Inc()
		}
		all = append(all, list)
	}
	return all
}

// giveBack gives back the hits of one descriptor, and answers what is left then. It never denies.
func (s *rls) giveBack(ctx context.Context, q admit.Request, place int, replaced []string, a *rlsReply) error {
	list := q.Lists[place]
	back, err := s.node.RefundLast(ctx, q.Domain, list, replaced)
	e := audit.Event{Act: audit.GiveBack, Detail: "negative hits",
		Buckets: audited(s.node.Buckets(q.Domain, list))}
	for _, c := range back.Charges {
		e.Units = max(e.Units, int64(c.Back))
	}
	if len(e.Buckets) > 0 {
		s.options.Done(ctx, e, err)
	}
	if err != nil {
		return err
	}
	q.Lists = []admit.List{{Entries: list.Entries}}
	d, err := s.node.Peek(ctx, q)
	if err != nil {
		return err
	}
	if len(d.Met) > 0 {
		status := statusOf(d, d.Met[0])
		status.Code = passed
		a.response.Statuses[place] = status
		a.meets(place, d, d.Met[0])
	}
	return nil
}

// maxCount is the largest number that Envoy can be told.
const maxCount = math.MaxUint32

func count(units quantity.Units) uint32 { return uint32(min(max(units, 0), maxCount)) }
