//go:build !race

package exchange

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// quiet plays a node without requests that has two peers, tick by tick. Peers answer a call after a
// round trip, unless they are cut off.
type quiet struct {
	t       *testing.T
	m       *Machine
	now     quantity.NodeTime
	peers   []string
	cut     map[string]bool
	calls   map[string][]quantity.NodeTime // when each peer was called
	answers map[quantity.NodeTime][]Event  // by when the machine hears them
}

const quietRoundTrip = allocator.Second / 25

func newQuiet(t *testing.T) *quiet {
	q := &quiet{t: t, m: New("us", "n1", Options{}), now: 1_000_000 * quantity.NodeTime(allocator.Second),
		peers: []string{"eu", "ap"}, cut: map[string]bool{},
		calls: map[string][]quantity.NodeTime{}, answers: map[quantity.NodeTime][]Event{}}
	q.step(TenureChanged{Generation: 7, Epoch: epochForTests, Peers: q.peers})
	return q
}

// step steps the machine and has the peers answer what it calls.
func (q *quiet) step(e Event) {
	for _, c := range q.m.Step(q.now, e).Calls {
		q.calls[c.Peer] = append(q.calls[c.Peer], q.now)
		at, answer := q.now.Add(c.Timeout), Event(Unanswered{ID: c.ID})
		if !q.cut[c.Peer] {
			at = q.now.Add(quietRoundTrip)
			answer = Answered{ID: c.ID, Reply: Reply{From: c.Peer, Generation: 9, ForGeneration: 7,
				Grants: make([]Grant, len(c.Message.Asks)), At: quantity.StoreTime(at)}}
		}
		q.answers[at] = append(q.answers[at], answer)
	}
}

// tick lets time pass until the next tick, and ticks.
func (q *quiet) tick(t Tick) {
	for until := q.now.Add(Interval); q.now < until; {
		q.now = q.now.Add(quietRoundTrip)
		for _, e := range q.answers[q.now] {
			q.step(e)
		}
		delete(q.answers, q.now)
	}
	t.Jitter = allocator.PPM
	q.step(t)
}

// pass lets some ticks pass.
func (q *quiet) pass(ticks int) {
	for range ticks {
		q.tick(Tick{})
	}
}

// gaps returns the times, in ticks, between the calls of a peer in so many ticks to come.
func (q *quiet) gaps(peer string, ticks int) (all []int64) {
	from := len(q.calls[peer])
	q.pass(ticks)
	calls := q.calls[peer][from:]
	for i := 1; i < len(calls); i++ {
		all = append(all, calls[i].Sub(calls[i-1])/Interval)
	}
	return all
}

func (q *quiet) wantGaps(what, peer string, longest, ticks int64) {
	q.t.Helper()
	got := q.gaps(peer, int(ticks))
	if len(got) < int(ticks/longest)-2 || slices.Max(got) > longest || longest == quietGap && slices.Min(got) < longest {
		q.t.Errorf("%s: %s is called after %v ticks, want %d", what, peer, got, longest)
	}
}

// The longest gaps between calls, in ticks.
const (
	usualGap = (PingEvery + Interval/2) / Interval
	quietGap = QuietEvery / Interval
)

// TestAQuietPeerIsPingedEverySecond: peers that answer are called once a second while no bucket is
// in view, twice as often as soon as one is, and once a second again when it is forgotten.
func TestAQuietPeerIsPingedEverySecond(t *testing.T) {
	q := newQuiet(t)
	q.pass(10)
	for _, p := range q.peers {
		q.wantGaps("nothing to do", p, quietGap, 100)
	}
	b := &Bucket{ID: "b", Epoch: epochForTests, Kind: algorithms.FixedWindow, Limit: 300, Window: allocator.Second,
		Cell: allocator.Second, Entitlements: map[string]quantity.Units{"us": 100, "eu": 100, "ap": 100}}
	q.step(Observed{Bucket: b, Requests: allocator.Requests{Admitted: 1}, Now: quantity.StoreTime(q.now), State: algorithms.State{
		Cell: b.Cells().At(quantity.StoreTime(q.now)), Entitlement: 100, Share: 100, NextShare: 100, Used: 1, Free: 99}})
	q.wantGaps("a bucket in view", "eu", usualGap, idleAfter/Interval-2)
	q.pass(10)
	q.wantGaps("it is forgotten", "eu", quietGap, 50)
}

// TestWhatIsWrongIsPingedAsBefore: a peer that never answered, or that left one call unanswered, is
// called twice a second, and all peers are while this node waits for what they know of a loss.
func TestWhatIsWrongIsPingedAsBefore(t *testing.T) {
	q := newQuiet(t)
	q.cut["ap"] = true
	q.wantGaps("never heard", "ap", usualGap, 50)
	q.wantGaps("the other is well", "eu", quietGap, 50)

	q.cut["ap"] = false
	q.pass(10)
	q.wantGaps("heard at last", "ap", quietGap, 50)
	q.cut["eu"] = true
	missed := len(q.calls["eu"])
	for len(q.calls["eu"]) == missed { // the next call is left unanswered
		q.tick(Tick{})
	}
	q.cut["eu"] = false
	missed = len(q.calls["eu"])
	if q.pass(usualGap); len(q.calls["eu"]) == missed {
		t.Errorf("after a call without an answer eu is not called for %d ticks", usualGap)
	}
	q.pass(10)
	q.wantGaps("it answers again", "eu", quietGap, 50)

	b := &Bucket{ID: "b", Epoch: epochForTests, Kind: algorithms.FixedWindow, Limit: 300, Window: 3600 * allocator.Second,
		Cell: 3600 * allocator.Second, Recovered: true, Entitlements: map[string]quantity.Units{"us": 100, "eu": 100, "ap": 100}}
	q.step(Lost{Generation: 7, Now: quantity.StoreTime(q.now), Buckets: []LostBucket{{b, quantity.StoreTime(q.now)}}})
	q.pass(int(idleAfter / Interval))
	if q.m.Stats().Recovering == 0 {
		t.Fatal("nothing waits")
	}
	q.wantGaps("a recovery is under way", "eu", usualGap, 50)
}

// TestNewsOfDocumentsAreToldAtOnce: as soon as this region says something else of its documents,
// every peer is called, whenever it was called last.
func TestNewsOfDocumentsAreToldAtOnce(t *testing.T) {
	q := newQuiet(t)
	for phase := range int(2 * quietGap) {
		q.pass(10 + phase)
		q.tick(Tick{News: true})
		for _, p := range q.peers {
			if last := q.calls[p][len(q.calls[p])-1]; last != q.now {
				t.Errorf("phase %d: %s was called %d µs before", phase, p, q.now.Sub(last))
			}
		}
	}
}

// TestAQuietPeerThatIsCutOffIsNoticedInTime: from a cut on a quiet node is degraded within three
// seconds and a tick, and from its end on it hears the peer within half a second and a round trip.
func TestAQuietPeerThatIsCutOffIsNoticedInTime(t *testing.T) {
	for phase := range int(quietGap) {
		q := newQuiet(t)
		q.pass(20 + phase)
		eu := func() PeerAge { return q.m.Ages(q.now)[0] }
		q.cut["eu"] = true
		cut := q.now
		for !eu().Degraded && q.now.Sub(cut) < 2*DegradedAfter {
			q.tick(Tick{})
		}
		if took := q.now.Sub(cut); took < DegradedAfter-QuietEvery || took > DegradedAfter+Interval {
			t.Errorf("phase %d: degraded %d µs after the cut", phase, took)
		}
		q.pass(20 + phase)
		q.cut["eu"] = false
		healed := q.now
		for eu().Degraded && q.now.Sub(healed) < 2*DegradedAfter {
			q.tick(Tick{})
		}
		if took := q.now.Sub(healed); took > PingEvery+Interval/2+Interval {
			t.Errorf("phase %d: heard %d µs after the heal", phase, took)
		}
	}
}
