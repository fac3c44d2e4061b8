package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/play/envoy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/envoys"
)

// proxy is an Envoy of a region, and its callers.
type proxy struct {
	w      *world
	r      *region
	b      *bucket
	name   string
	random *rand.Rand
	envoy  *envoy.Envoy
	born   int64
	demand int64 // requests in a thousand seconds
	hangs  bool  // it is paused now and then

	node    *node // to which its stream goes; nil: it is down
	life    int   // of the node
	stream  *envoys.Stream
	pausing int64 // it is paused until then
	stalled []func()
	number  uint64
	// arrives is when the last message of each way arrives: a stream keeps their order.
	arrives [2]int64
}

// maxDelay is the longest that a message takes to an Envoy or back, µs: a little less than what a
// node counts on.
const maxDelay = assign.Late * 9 / 10

// proxies begins an Envoy.
func (w *world) proxies(a Act) {
	p := &proxy{w: w, r: w.regions[a.Region], b: w.limits[0].buckets[a.Key],
		random: w.plan.random(forActs, a.ID), born: w.now, demand: a.Amount, hangs: a.Back,
		name: fmt.Sprintf("envoy%d", a.ID)}
	p.envoy = envoy.New(envoy.Config{Domain: w.limits[0].policy.Domain})
	w.counts.Deeds[a.Do]++
	w.envoys = append(w.envoys, p)
	p.request()
	p.happens()
}

// now returns the time of the Envoy's clock.
func (p *proxy) now() time.Duration { return span(p.w.now - p.born + 1) }

// at does something at a time, after a pause if the Envoy is paused then.
func (p *proxy) at(t int64, do func()) {
	p.w.at(t, func() {
		if p.w.now < p.pausing {
			p.stalled = append(p.stalled, do)
			return
		}
		do()
	})
}

// happens does something to the Envoy now and then, until faults end: its demand changes, its
// stream breaks, or it is paused.
func (p *proxy) happens() {
	w := p.w
	w.in(allocator.Second+p.random.Int64N(8*allocator.Second), func() {
		if w.now >= w.plan.Heal {
			return
		}
		switch chance := p.random.IntN(8); {
		case chance < 3:
			p.demand = 1000 * p.random.Int64N(2*int64(p.b.limit.policy.Limit))
		case chance < 6:
			p.down()
			if p.random.IntN(2) == 0 { // it goes on at another node in the same moment
				p.connect()
			}
		case p.starves():
		case p.hangs && p.pausing < w.now:
			p.pause(p.random.Int64N(30 * allocator.Second))
		}
		p.happens()
	})
}

// starves starves the node of the Envoy's stream now and then: it reads no reports for up to half a
// minute, or sends none of its assignments.
func (p *proxy) starves() bool {
	if !p.up() || p.random.IntN(2) == 0 {
		return false
	}
	until := p.w.now + p.random.Int64N(30*allocator.Second)
	if p.random.IntN(3) > 0 {
		p.node.starved = max(p.node.starved, until)
	} else {
		p.node.mute = max(p.node.mute, until)
	}
	return true
}

// pause stops the Envoy for a while. What it may admit too much then is a printed term.
func (p *proxy) pause(length int64) {
	p.w.tell(p.r, "%s is paused for %v", p.name, span(length))
	p.pausing = p.w.now + length
	p.b.allow(p.r, p.b.termLateEnvoy(), p.name+" was paused", false)
	p.w.in(length, func() {
		stalled := p.stalled
		p.stalled = nil
		for _, do := range stalled {
			do()
		}
	})
}

// request makes a request, and schedules the next one.
func (p *proxy) request() {
	w := p.w
	each := 1_000_000_000 / max(p.demand, 100)
	p.at(w.now+each/2+p.random.Int64N(each)+1, func() {
		if p.demand > 0 {
			allowed, first := p.envoy.Request(p.now(), p.id())
			if allowed {
				p.admits()
			}
			if first != nil {
				p.sends(first)
				p.timer()
			}
		}
		p.request()
	})
}

func (p *proxy) id() map[string]string { return p.w.plan.descriptors(p.w.plan.Keys[p.b.key]) }

// admits passes an admission on to the judge, by the time of the region's store. While that stands still,
// as after a loss until its clock has come as far, the Envoy goes on by its own: what it admits of a
// bucket then is a printed term.
func (p *proxy) admits() {
	p.number++
	at := p.r.storeTime()
	p.w.counts.Proxied++
	if p.b.limit.kind() == algorithms.TokenBucket && at > p.r.clock() {
		p.b.allow(p.r, 1, p.r.name+"'s time stands still", false)
	}
	p.b.judge.Record(oracle.Answer{Bucket: p.w.plan.Keys[p.b.key], Region: p.r.name, Node: p.name,
		Sequence: p.number, Cost: 1, Outcome: oracle.Admitted, At: int64(at),
		Cell: p.b.limit.rule.CellOf(int64(at)), Sent: p.w.judgeTime(), Seen: p.w.judgeTime()})
}

// storeTime returns the time of a region's store: what its clock shows, or what the store has shown
// if that was later.
func (r *region) storeTime() quantity.StoreTime {
	at := max(r.clock(), r.latestShown())
	if !r.refuses() {
		at = max(at, r.clock().Add(r.storeAhead))
	}
	for _, n := range r.nodes {
		if n.live != nil {
			at = max(at, n.way.Latest())
		}
	}
	return at
}

// stepped allows what Envoys may admit in the window before or after, as they were told, when the
// clock of their region's store steps.
func (r *region) stepped() {
	for _, p := range r.w.envoys {
		if p.r == r && p.b.limit.kind() == algorithms.FixedWindow {
			p.b.allow(r, p.b.termLateEnvoy(), r.name+"'s clock stepped", true)
		}
	}
}

// timer has the Envoy report when it is due.
func (p *proxy) timer() {
	p.at(p.born+p.envoy.Due().Microseconds(), func() {
		p.sends(p.envoy.Tick(p.now()))
		p.timer()
	})
}

// sends sends a report, on a new stream if it has none.
func (p *proxy) sends(m *rlqsv3.RateLimitQuotaUsageReports) {
	if !p.up() && !p.connect() {
		return
	}
	s, usages := p.stream, usagesOf(m)
	p.reads(p.node, p.arrival(0), func() {
		if s == p.stream {
			s.Report(usages)
			p.node.assign()
		}
	})
}

// reads has a node read a message of the Envoy's at a time, or when it reads again.
func (p *proxy) reads(n *node, at int64, read func()) {
	n.at(at, func() {
		if p.w.now < n.starved {
			p.reads(n, n.starved, read)
			return
		}
		read()
	})
}

// up reports whether the Envoy has a stream to a node that lives.
func (p *proxy) up() bool {
	if p.stream != nil && (p.node.live == nil || p.node.life != p.life) {
		p.stream = nil
	}
	return p.stream != nil
}

// connect opens a stream to a node of the region.
func (p *proxy) connect() bool {
	n := p.r.nodes[p.random.IntN(len(p.r.nodes))]
	if n.live == nil || p.w.now < max(n.starved, n.paused) { // the first report of a stream is on time
		return false
	}
	s, err := n.live.Envoys().Open(p.w.limits[0].policy.Domain)
	if err != nil {
		return false
	}
	p.node, p.life, p.stream = n, n.life, s
	return true
}

// down breaks the stream. The node hears of it later.
func (p *proxy) down() {
	if p.up() {
		s := p.stream
		p.stream = nil
		most := []int64{10_000, allocator.Second, 20 * allocator.Second}[p.random.IntN(3)]
		p.node.at(p.w.now+1+p.random.Int64N(most), s.Close)
	}
}

// arrival returns when a message arrives that is sent now: each way keeps the order.
func (p *proxy) arrival(way int) int64 {
	most := []int64{1000, 50_000, maxDelay}[p.random.IntN(3)]
	p.arrives[way] = max(p.w.now+1+p.random.Int64N(most), p.arrives[way])
	return p.arrives[way]
}

// assign has the node plan what it assigns, and send it.
func (n *node) assign() {
	if n.live == nil || len(n.w.envoys) == 0 {
		return
	}
	n.live.Run(func() {
		if n.live.Assign() {
			n.touch(n.w.limits[0].buckets[0].id, n.live.Generation())
		}
		n.take()
		n.drain()
	})
}

// take has the Envoys of a node take what it has for them.
func (n *node) take() {
	if n.w.now < n.mute {
		return
	}
	for _, p := range n.w.envoys {
		if p.node != n || !p.up() {
			continue
		}
		for all := p.stream.Take(); len(all) > 0; all = p.stream.Take() {
			m, s := actionsOf(all), p.stream
			p.at(p.arrival(1), func() {
				if s == p.stream {
					p.envoy.Received(p.now(), m)
				}
			})
		}
	}
}

// checkProxies checks what is wrong about what Envoys were told.
func (w *world) checkProxies() {
	for _, p := range w.envoys {
		for _, fault := range p.envoy.Faults {
			w.breaks("answers", "%s: %s", p.name, fault)
		}
	}
}

func usagesOf(m *rlqsv3.RateLimitQuotaUsageReports) (all []envoys.Usage) {
	for _, u := range m.GetBucketQuotaUsages() {
		all = append(all, envoys.Usage{ID: u.GetBucketId().GetBucket(),
			Allowed: u.GetNumRequestsAllowed(), Denied: u.GetNumRequestsDenied(),
			Elapsed: u.GetTimeElapsed().GetSeconds()})
	}
	return all
}

func actionsOf(all []envoys.Assignment) *rlqsv3.RateLimitQuotaResponse {
	m := &rlqsv3.RateLimitQuotaResponse{}
	for _, a := range all {
		action := &rlqsv3.RateLimitQuotaResponse_BucketAction{BucketId: &rlqsv3.BucketId{Bucket: a.ID}}
		m.BucketAction = append(m.BucketAction, action)
		if a.Abandon {
			action.BucketAction = &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction_{
				AbandonAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction{}}
			continue
		}
		action.BucketAction = &rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
			QuotaAssignmentAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
				AssignmentTimeToLive: &durationpb.Duration{Seconds: a.TTL},
				RateLimitStrategy: &typev3.RateLimitStrategy{
					Strategy: &typev3.RateLimitStrategy_TokenBucket{TokenBucket: &typev3.TokenBucket{
						MaxTokens: uint32(a.Burst), TokensPerFill: wrapperspb.UInt32(uint32(a.Rate)),
						FillInterval: &durationpb.Duration{Seconds: 1}}}}}}
	}
	return m
}
