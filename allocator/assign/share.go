package assign

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// share is one Envoy's part of what a bucket id is charged to.
type share struct {
	stream  Stream
	key     string
	pools   []*pool
	targets []int64 // by pool: the rate that the plan of the pool gives it
	gone    bool    // the stream has ended

	proof      proof             // of when reports were sent
	sent       quantity.NodeTime // when a report was last sent, as far as that is proven
	heard      quantity.NodeTime // when the stream was last heard of
	reportedAt quantity.NodeTime // when a report that told a rate came
	// read is until when reports surely show what was admitted.
	read     quantity.NodeTime
	measured bool  // there was a second report, so that the demand is known
	demand   int64 // thousandths of a token a second, denied ones included
	// admitted and denied are what the last report said, in thousandths of a unit a second.
	admitted, denied int64
	// hidden is demand that the last report may not show yet, in the same unit; negative: demand
	// that it shows and that is over by now. Other regions hear of what is missing, so that they
	// shrink once and not twice.
	hidden  int64
	covers  int64          // the time that the last report tells of
	counted quantity.Units // denied units of the last report that count as demand
	// unread is what was admitted and denied in reports that came too soon to tell a rate.
	unread [2]quantity.Units

	grants  []grant // that may be in force, in the order in which they were sent
	changed quantity.NodeTime
}

// grant is an assignment as it may be in force at an Envoy.
type grant struct {
	rate  int64
	burst quantity.Units
	from  quantity.NodeTime // when it was first sent
	// ends is when it ends at the earliest, by the last message; until is when it has surely ended by
	// itself.
	ends, until quantity.NodeTime
	ttl         int64 // of the last message
	// told is ends by the last message that was sent; 0: none was. Only what was sent is in force.
	told quantity.NodeTime
	// replaced is when the assignment that takes its place was sent; 0: none was.
	replaced quantity.NodeTime
	pools    []*pool
	ended    bool // it is not in force any more; a report of it is still to come
	lapses   bool // it is not renewed any more: its tokens are more than a pool's part
}

// over returns when an assignment has surely ended. The message that replaced it may have been lost
// with the stream. The Envoy has surely taken that message if it sends a report later, which is when
// that is proven, and not when the report comes.
func (s *share) over(g *grant) quantity.NodeTime {
	if taken := g.replaced.Add(Late); g.replaced > 0 && s.sent >= taken.Add(Late) {
		return min(g.until, taken)
	}
	return g.until
}

// report takes in what the Envoy admitted and denied since its last report, elapsed ago by its clock.
func (s *share) report(now quantity.NodeTime, elapsed int64, allowed, denied quantity.Units) {
	if s.reportedAt == 0 { // the first comes with the first request, and says nothing of the rate
		s.reportedAt = now
		return
	}
	s.unread[0] = min(s.unread[0]+allowed, maxReport)
	s.unread[1] = min(s.unread[1]+denied, maxReport)
	since := now.Sub(s.reportedAt)
	if elapsed > 0 { // by its clock, nearly a second more may have passed
		since = min(max(since, elapsed), elapsed+second)
	}
	if since < second/2 {
		return
	}
	before, known := *s, s.measured
	if known && max(since-ReportEvery, ReportEvery-since) < Late {
		since = ReportEvery // that it came sooner or later says more of the way than of the Envoy
	}
	allowed, denied = s.unread[0], s.unread[1]
	s.reportedAt, s.measured, s.unread = now, true, [2]quantity.Units{}
	s.counted = max(min(denied, s.usual(since)),
		allocator.CountedDenials(denied, reportGrowth*s.counted, reportGrowth*allowed))
	s.admitted = milli(allowed, since)
	s.denied = milli(s.counted, since)
	s.demand, s.hidden, s.covers = s.admitted+s.denied, 0, since
	if known && before.covers > ReportEvery/2 {
		s.hidden = s.step(before.demand, before.denied)
	}
	if differs := max(s.demand-before.demand, before.demand-s.demand); known && !s.short() &&
		differs <= before.demand/changeBy {
		return // the next plan is soon enough
	}
	for _, p := range s.pools {
		p.news(now)
	}
}

const (
	// reportGrowth is how many times as fast counted denials may grow from report to report as from
	// tick to tick: after a step of demand two reports must tell it.
	reportGrowth = 4
	// reportsTogether is for how long a plan waits for further reports of the same moment.
	reportsTogether = second / 5
)

// milli returns a rate in thousandths of a unit a second.
func milli(units quantity.Units, elapsed int64) int64 {
	return int64(allocator.PerSecond(units, elapsed))
}

// maxReport bounds the units of one report that count.
const maxReport = 1 << 40

// end takes in that the stream is over. A paused Envoy may still take what was sent to it.
func (s *share) end(now quantity.NodeTime) {
	s.withdraw()
	if s.silent(now) {
		s.prolong(now)
	}
	s.gone, s.demand, s.admitted, s.denied, s.hidden = true, 0, 0, 0, 0
}

// silent reports whether the Envoy has missed reports, and so may be paused.
func (s *share) silent(now quantity.NodeTime) bool { return now.Sub(s.heard) > silentAfter }

// prolong counts all assignments as taken by the Envoy only now.
func (s *share) prolong(now quantity.NodeTime) {
	for i := range s.grants {
		g := &s.grants[i]
		g.until = max(g.until, now.Add(g.ttl*second))
	}
}

// last returns the assignment that was sent last, if the Envoy will still have it when a message
// that is sent now arrives; else nil.
func (s *share) last(now quantity.NodeTime) *grant {
	n := len(s.grants)
	if n == 0 {
		return nil
	}
	g := &s.grants[n-1]
	if g.replaced > 0 || g.ends <= now.Add(Late) || !slices.Equal(g.pools, s.pools) {
		return nil
	}
	return g
}

// rate returns the highest rate that the Envoy may have of a pool at any time between from and to.
func (s *share) rate(p *pool, from, to quantity.NodeTime) (most int64) {
	for i := range s.grants {
		g := &s.grants[i]
		if g.from < to && from < s.over(g) && slices.Contains(g.pools, p) {
			most = max(most, g.rate)
		}
	}
	return most
}

// burst returns the tokens of a pool that the Envoy may hold.
func (s *share) burst(p *pool) (sum quantity.Units) {
	for i := range s.grants {
		if g := &s.grants[i]; !g.ended && slices.Contains(g.pools, p) {
			sum += g.burst
		}
	}
	return sum
}

// grant notes that an assignment is to be sent, as a new one.
func (s *share) grant(now quantity.NodeTime, rate int64, burst quantity.Units, ttl int64) {
	s.grants = append(s.grants, grant{rate: rate, burst: burst, from: now,
		ends: now.Add(ttl * second), until: now.Add(Late + ttl*second), ttl: ttl, pools: s.pools})
	s.changed = now
}

// sentLast notes that the last assignment is sent. It takes the place of those before it. Of those, what
// was not sent was not assigned.
func (s *share) sentLast(now quantity.NodeTime) {
	last := len(s.grants) - 1
	for i := range s.grants[:last] {
		if g := &s.grants[i]; g.replaced == 0 {
			g.replaced = now
		}
	}
	s.grants[last].told = s.grants[last].ends
	s.withdraw()
}

// unsentLast notes that the last assignment was not sent, or was not sent once more.
func (s *share) unsentLast() {
	last := len(s.grants) - 1
	if g := &s.grants[last]; g.told > 0 {
		g.ends = g.told
		return
	}
	s.withdraw()
	s.changed = 0
}

// withdraw forgets the assignments that were not sent. Their tokens go back, but for those that a store
// has lost since.
func (s *share) withdraw() {
	s.grants = slices.DeleteFunc(s.grants, func(g grant) bool {
		if g.told > 0 {
			return false
		}
		for _, p := range g.pools {
			if g.from > p.forgot {
				p.pay(-g.burst)
			}
		}
		return true
	})
}

// renew notes that the last assignment is to be sent once more.
func (g *grant) renew(now quantity.NodeTime, ttl int64) {
	g.ends = now.Add(ttl * second)
	g.until = max(g.until, now.Add(Late+ttl*second))
	g.ttl = ttl
}

// forget drops assignments that have surely ended. It reports whether any of them ended without
// being replaced.
func (s *share) forget(now quantity.NodeTime) (expired bool) {
	if !s.gone && s.silent(now) {
		s.prolong(now)
	}
	ended := false
	for i := range s.grants {
		g := &s.grants[i]
		if !g.ended && s.over(g) <= now {
			g.ended = true
			expired = expired || i == len(s.grants)-1
		}
		ended = ended || g.ended
	}
	if ended {
		s.grants = slices.DeleteFunc(s.grants,
			func(g grant) bool { return g.ended && s.settle(now, &g) })
	}
	return expired
}
