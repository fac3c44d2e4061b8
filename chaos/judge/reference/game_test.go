//go:build reference && !race

package reference

import (
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const (
	// stretch is how many requests meet one configuration before another has its turn, so that they
	// meet windows of a second, too.
	stretch = 25
	// margin is how long before the end of a second no request begins.
	margin = 50 * time.Millisecond
)

// side is one of both servers, with the model that it is compared with.
type side struct {
	name  string
	ask   rlsv3.RateLimitServiceClient
	model *Server
	// unsure holds the counts that the model may not know: the server answered otherwise before, or
	// nobody can say in which window it counted.
	unsure map[string]bool
}

// game plays requests to both servers.
type game struct {
	t          *testing.T
	peer, node *side
	tally      *tally
}

func newGame(t *testing.T, p *pair, d *drawing) *game {
	c, err := Parse(d.texts...)
	suite.Must(t, err)
	return &game{t: t, tally: newTally(),
		peer: &side{"envoyproxy/ratelimit", p.peer, NewServer(c, Charged), map[string]bool{}},
		node: &side{"quotad", p.node, NewServer(c, habit()), map[string]bool{}}}
}

// loaded fails the test if envoyproxy/ratelimit has not loaded its files: it serves all the same.
func (g *game) loaded(p *pair) {
	m := &rlsv3.RateLimitRequest{Domain: "unknown", Descriptors: []*ratelimitv3.RateLimitDescriptor{{}}}
	if _, err := p.peer.ShouldRateLimit(g.t.Context(), m); err != nil {
		g.t.Fatalf("envoyproxy/ratelimit: %v\n%s", err, p.output())
	}
}

// play plays so many requests that a source draws.
func (g *game) play(s Source, each [][]Root, requests int) {
	if len(each) == 0 {
		return
	}
	var roots []Root
	pauses := max(60, requests/200)
	for i := range requests {
		if i%stretch == 0 {
			roots = pick(s, each)
		}
		if s.one(pauses) {
			time.Sleep(untilSecond())
		}
		if left := untilSecond(); left < margin {
			time.Sleep(left)
		}
		g.round(s.Request(roots), s.One)
	}
}

// untilSecond returns how long it is until the next second begins.
func untilSecond() time.Duration {
	now := time.Now()
	return now.Truncate(time.Second).Add(time.Second).Sub(now)
}

// turn is one request with the answers of one side and of its model.
type turn struct {
	request   *rlsv3.RateLimitRequest
	all       []*asked
	got, want *rlsv3.RateLimitResponse
}

// round plays one request to both. same says that their answers must be the same.
func (g *game) round(m *rlsv3.RateLimitRequest, same bool) {
	before := time.Now()
	peer := g.ask(g.peer, m)
	node := g.ask(g.node, m)
	after := time.Now()
	g.tally.requests++
	for _, side := range []struct {
		*side
		*turn
	}{{g.peer, peer}, {g.node, node}} {
		side.all = side.model.decide(before, m)
		side.want = side.model.answer(before.Unix(), m, side.all)
		if side.side == g.peer && !*newer {
			asOlder(side.turn)
		}
	}
	if before.Unix() != after.Unix() && limited(node.all) {
		g.tally.leftOut++
		g.peer.doubt(peer.all, before, after)
		g.node.doubt(node.all, before, after)
		time.Sleep(untilSecond())
		return
	}
	g.compare(peer, node, same)
}

// compare compares the answers of one round with those of the models, and with each other.
func (g *game) compare(peer, node *turn, same bool) {
	alike := g.tally.add(g.peer.name, peer, differences(peer, g.peer.unsure))
	ours := differences(node, g.node.unsure)
	if !g.tally.add(g.node.name, node, ours) {
		alike = false
	}
	switch {
	case same && !*newer && quotaDenies(node):
		g.tally.causes[olderQuota]++
	case same:
		both := &turn{node.request, node.all, withoutDynamic(node.got), withoutDynamic(peer.got)}
		if !g.tally.add("both, cost 1", both, differences(both, g.node.unsure)) {
			alike = false
		}
		g.tally.ones++
	default:
		g.tally.explain(peer, node)
	}
	g.peer.learn(peer)
	g.node.learn(node)
	if alike {
		g.tally.alike++
	}
}

// withoutDynamic returns an answer without its dynamic metadata, which each model knows for itself.
func withoutDynamic(r *rlsv3.RateLimitResponse) *rlsv3.RateLimitResponse {
	r = proto.CloneOf(r)
	r.DynamicMetadata = nil
	return r
}

func (g *game) ask(s *side, m *rlsv3.RateLimitRequest) *turn {
	got, err := s.ask.ShouldRateLimit(g.t.Context(), m)
	if err != nil {
		g.t.Fatalf("%s: %v: %v", s.name, m, err)
	}
	return &turn{request: m, got: got}
}

// limited reports whether a limit applies to a request, so that its answer depends on the time.
func limited(all []*asked) bool {
	for _, a := range all {
		if a.limit != nil {
			return true
		}
	}
	return false
}

// doubt records that a request may have been counted before or after the end of windows.
func (s *side) doubt(all []*asked, before, after time.Time) {
	for _, a := range all {
		if a.limit == nil {
			continue
		}
		unit := seconds[a.limit.Unit]
		if before.Unix()/unit != after.Unix()/unit {
			s.unsure[a.count] = true
			s.unsure[a.in(after.Unix())] = true
		}
	}
}

// asOlder makes the wanted answer of a turn that of an envoyproxy/ratelimit of before July 2026:
// limits in quota mode deny nothing, of those without room no reset is told, and no metadata of any.
func asOlder(t *turn) {
	t.want.DynamicMetadata = nil
	t.want.OverallCode = rlsv3.RateLimitResponse_OK
	for i, a := range t.all {
		status := t.want.Statuses[i]
		switch {
		case status.Code == rlsv3.RateLimitResponse_OK:
		case a.limit.Quota:
			status.Code, status.DurationUntilReset = rlsv3.RateLimitResponse_OK, nil
		default:
			t.want.OverallCode = rlsv3.RateLimitResponse_OVER_LIMIT
		}
	}
}

// quotaDenies reports whether a limit in quota mode has no room for a request.
func quotaDenies(t *turn) bool {
	for i, a := range t.all {
		if a.limit != nil && a.limit.Quota && t.want.Statuses[i].Code == rlsv3.RateLimitResponse_OVER_LIMIT {
			return true
		}
	}
	return false
}

// learn has the model follow a server that answered otherwise. What an answer says is left of a
// limit tells its count. Until there is such an answer the count is not known.
func (s *side) learn(t *turn) {
	if len(t.got.Statuses) != len(t.all) {
		return
	}
	for i, a := range t.all {
		if a.limit == nil || a.limit.Requests == 0 {
			continue
		}
		g, w := t.got.Statuses[i], t.want.Statuses[i]
		if g.Code != w.Code || g.LimitRemaining != w.LimitRemaining || g.CurrentLimit == nil {
			s.unsure[a.count] = true
		}
		known := g.CurrentLimit != nil && g.Code == rlsv3.RateLimitResponse_OK && g.LimitRemaining > 0
		if s.unsure[a.count] && known {
			s.model.counts[a.count] = uint64(a.limit.Requests) - uint64(g.LimitRemaining)
			delete(s.unsure, a.count)
		}
	}
}
