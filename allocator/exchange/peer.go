package exchange

import "github.com/quotad/quotad/allocator"

const (
	// DegradedAfter is the age of a peer's last answer beyond which this node is degraded towards it: six pings.
	DegradedAfter = 3 * allocator.Second
	// PingEvery is how often a peer is called at least.
	PingEvery = allocator.Second / 2
	// MaxCalls bounds the calls under way to one peer.
	MaxCalls = 32

	minTimeout       = allocator.Second
	maxTimeout       = 3 * allocator.Second
	assumedRoundTrip = allocator.Second / 10
)

// peer is what this node knows of another region, whatever the bucket.
type peer struct {
	lastGeneration uint64 // the highest that was heard of its store and believed
	name           string
	heard          bool  // it ever answered
	answered       int64 // when the latest call that it answered was sent
	called         int64 // when it was last called
	roundTrip      int64 // smoothed, 0: not measured
	underway       int
	queue          queue // buckets that wait for room in calls to it
	index          int   // in the document's order, this region left out
	open           int   // this step's call to it, by its place among the effects, if it is there
	away           bool  // degraded, at the last tick
	clock          clock
	moved          Moved
}

// Moved is how many units this node has moved between its region and a peer since it knows the
// peer.
type Moved struct {
	Lent          int64 // to the peer, of our entitlement
	Returned      int64 // to the peer, of what we had borrowed
	Borrowed      int64 // from the peer
	Regained      int64 // from the peer, of what we had lent
	BurstLent     int64 // tokens
	BurstBorrowed int64
}

// degraded is a matter of ages alone; nothing sets it.
func (p *peer) degraded(now int64) bool {
	return !p.heard || now-p.answered > DegradedAfter
}

// answeredCall notes an answer to a call sent at a time.
func (p *peer) answeredCall(sent, now int64) {
	p.heard = true
	p.answered = max(p.answered, sent)
	sample := now - sent
	if p.roundTrip == 0 {
		p.roundTrip = sample
	}
	p.roundTrip += (sample - p.roundTrip) / 8
}

// expected returns the round trip to count on.
func (p *peer) expected() int64 {
	if p.roundTrip == 0 {
		return assumedRoundTrip
	}
	return p.roundTrip
}

// timeout is how long a call may take: four round trips, within bounds.
func (p *peer) timeout() int64 {
	return min(max(4*p.expected(), minTimeout), maxTimeout)
}
