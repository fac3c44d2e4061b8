package callers

import (
	"context"
	"errors"
	"math"
	"time"

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
	tooMany prometheus.Counter
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
			Help: "Requests of Envoy that were denied because they meet more limits than can be decided at once: let fewer apply, or send fewer descriptors."})}
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
	h := readHits(m)
	s.ignored.Add(float64(h.limits))
	if len(h.refunded) > 0 &&
		s.node.Document().Domain(m.GetDomain()).NegativeHits != policy.GiveBackHits {
		s.unreturned.Add(float64(len(h.refunded)))
		h.asked, h.refunded = append(h.asked, h.refunded...), nil
	}
	style := s.options.EnvoyHeaders
	a := newRLSReply(len(m.GetDescriptors()), style != "" && style != NoHeaders)
	q := admit.Request{Domain: m.GetDomain(), Caller: caller, Wait: wait, Lists: h.lists}
	if err := q.Validate(); err != nil { // also of lists that are not charged
		return nil, err
	}
	if err := s.denies(h.asked, a, s.ask(ctx, q, h.asked, a)); err != nil {
		return nil, err
	}
	if err := s.denies(h.charged, a, s.charge(ctx, q, h.charged, a)); err != nil {
		return nil, err
	}
	for _, i := range h.refunded {
		if err := s.giveBack(ctx, q, i, a); err != nil {
			return nil, err
		}
	}
	if a.keeps {
		a.response.ResponseHeadersToAdd = a.headers(style)
	}
	return a.whole(), nil
}

// denies denies the descriptors at some places if err says that they meet too many limits: of an error
// Envoy would let the request pass, and whoever can choose descriptors would pass all limits. Other
// errors it returns.
func (s *rls) denies(places []int, a *rlsReply, err error) error {
	if _, is := errors.AsType[admit.TooManyLimits](err); !is {
		return err
	}
	s.tooMany.Inc()
	a.refuse(places)
	return nil
}

// hits says what is to be done about each descriptor of a request, by its place.
type hits struct {
	lists                    []admit.List
	charged, asked, refunded []int
	limits                   int // that come with descriptors
}

func readHits(m *envoy.RateLimitRequest) (h hits) {
	all := m.GetDescriptors()
	h.lists, h.charged = make([]admit.List, 0, len(all)), make([]int, 0, len(all))
	for i, d := range all {
		units := uint64(max(m.GetHitsAddend(), 1))
		if own := d.GetHitsAddend(); own != nil {
			units = own.GetValue()
		}
		// More than any limit is as much as that: it is denied, and no error that Envoy lets pass.
		list := admit.List{Cost: quantity.Units(min(max(units, 1), 1<<51)),
			Entries: make([]policy.KeyValue, len(d.GetEntries()))}
		for n, e := range d.GetEntries() {
			list.Entries[n] = policy.KeyValue{Name: e.GetKey(), Value: e.GetValue()}
		}
		switch {
		case units == 0:
			h.asked = append(h.asked, i)
		case d.GetIsNegativeHits():
			h.refunded = append(h.refunded, i)
		default:
			h.charged = append(h.charged, i)
		}
		if d.GetLimit() != nil {
			h.limits++
		}
		h.lists = append(h.lists, list)
	}
	return h
}

// charge decides the descriptors that are to be charged. If one that is only asked about has no
// room, nothing is charged but limits that are charged always.
func (s *rls) charge(ctx context.Context, q admit.Request, places []int, a *rlsReply) error {
	if len(places) == 0 {
		return nil
	}
	q.Lists = some(q.Lists, places)
	switch {
	case s.node.Charges(q):
		d, err := s.node.Report(ctx, q, !a.denied())
		if err == nil {
			a.take(places, d)
		}
		return err
	case a.denied() || len(places) == 1:
		decide := s.node.Check
		if a.denied() {
			decide = s.peek
		}
		d, err := decide(ctx, q)
		if err == nil {
			a.take(places, d)
		}
		return err
	}
	decided, err := s.node.CheckLists(ctx, q)
	if len(decided) == 1 {
		a.take(places, decided[0])
	} else {
		a.takeApart(places, decided)
	}
	return err
}

// some returns the lists at some places.
func some(all []admit.List, places []int) []admit.List {
	if len(places) == len(all) {
		return all
	}
	lists := make([]admit.List, len(places))
	for n, i := range places {
		lists[n] = all[i]
	}
	return lists
}

// peek returns what a request would be answered, with what is left as nothing is charged.
func (s *rls) peek(ctx context.Context, q admit.Request) (admit.Decision, error) {
	d, err := s.node.Peek(ctx, q)
	return d.Uncharged(), err
}

// ask says what the descriptors at some places would be answered, and charges nothing.
func (s *rls) ask(ctx context.Context, q admit.Request, places []int, a *rlsReply) error {
	if len(places) == 0 {
		return nil
	}
	q.Lists, q.Question = some(q.Lists, places), true
	d, err := s.node.Check(ctx, q)
	if err == nil {
		a.take(places, d.Uncharged())
	}
	return err
}

// giveBack gives back the hits of one descriptor, and answers what is left then.
func (s *rls) giveBack(ctx context.Context, q admit.Request, place int, a *rlsReply) error {
	list := q.Lists[place]
	back, err := s.node.RefundLast(ctx, q.Domain, list)
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
	q.Lists = []admit.List{{Entries: list.Entries, Cost: 1}}
	d, err := s.peek(ctx, q)
	if err != nil {
		return err
	}
	a.take([]int{place}, d)
	a.passes(place)
	return nil
}

// maxCount is the largest number that Envoy can be told.
const maxCount = math.MaxUint32

func count(units quantity.Units) uint32 { return uint32(min(max(units, 0), maxCount)) }
