package queue

import (
	"errors"
	"time"

	"github.com/quotad/quotad/region/memory/rules"
)

// Overload is the error of a request that the store has no time for before its caller gives up. It
// was neither admitted nor denied, whatever on_store_failure says, because the store is there and
// only busy.
type Overload struct {
	Retry time.Duration // until the work that waits now is done
}

// Error implements error.
func (e *Overload) Error() string {
	return "queue_full: too much waits for the region's Redis, so the request was not decided in time; send fewer requests, or send them later"
}

// IsOverload reports whether an error is, or wraps, an *Overload.
func IsOverload(err error) bool {
	if err == nil {
		return false
	}
	_, full := errors.AsType[*Overload](err)
	return full
}

// Refused counts the requests that were not decided for want of time, by reason. Late counts script
// calls instead.
type Refused struct {
	Full    uint64 // no place was left in the queue, or a request of a shorter flow got it
	Expired uint64 // while they were queued their time became too short
	Late    uint64 // script calls whose answer came too late while the store answered others
	Waited  uint64 // their time was over before they were answered
}

// add adds what another lane refused.
func (r *Refused) add(other Refused) {
	r.Full += other.Full
	r.Expired += other.Expired
	r.Late += other.Late
	r.Waited += other.Waited
}

// wait puts a request into the queue, where it waits as long as its caller does. The error is an
// *Overload if no place is left. The caller holds the lock.
func (b *batcher) wait(w Ask) error {
	w.hash = hashOf(w.Applied)
	gone, full := b.fair.push(w)
	if !full {
		return nil
	}
	b.refused.Full++
	err := b.overload()
	if gone.answer == w.answer {
		return err
	}
	gone.answer <- Answer{Err: err}
	return nil
}

// overload is the error of a request that is not decided. The caller holds the lock.
func (b *batcher) overload() *Overload {
	return &Overload{b.pace.base + b.pace.takes(b.sent+b.fair.root.work)}
}

// busyParts says how much of one caller's work may wait before its batches are refused unread: the
// work of 1/busyParts of the time that the batch may wait.
const busyParts = 2

// Busy reports whether so much of a caller's work waits for the store that another batch of that
// caller should wait before it is read. waits is how long the batch may wait. Single requests need not ask Busy: they cost little to read, and their limit may be one for which
// nothing waits.
func (q *Queue) Busy(caller string, waits time.Duration) bool {
	return q.lanes.busy(caller, waits)
}

func (b *batcher) busy(caller string, waits time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.fair.flows[flowID{caller: caller}]
	if own == nil {
		return false
	}
	takes := b.pace.takes(b.sent + min(own.work*b.fair.root.children, b.fair.root.work))
	return takes > waits/busyParts
}

// hashOf returns a hash of buckets.
func hashOf(all []*rules.Applied) (h uint64) {
	for _, a := range all {
		h = h*31 + a.Hash
	}
	return h
}

// outwaited returns the error of a request whose time was over while the store answered others, and
// counts it.
func (b *batcher) outwaited() *Overload {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused.Waited++
	return b.overload()
}

// take returns the requests for the next round trip: the first ones, then as many of the queue as
// the work of a pipeline and maximum batch size allow, and at least one. It refuses requests that
// can no longer be answered in time. While nothing is under way one is let through all the same: the
// estimate of how long it takes may be wrong, and nothing else would correct it. If no request is
// left it returns none and ends the round trip.
func (b *batcher) take(first ...Ask) []Ask {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.on.Now()
	if len(first) == 0 && b.holdsBack(now) {
		b.trips-- // what waits goes with the next one
		return nil
	}
	if b.sent == 0 {
		b.pace.fade(now)
	}
	q := b.fair
	q.trip++
	most, work := b.pace.next(), int64(0)
	batch := append((*batches.Get().(*[]Ask))[:0], first...)
	for _, w := range first {
		work += scriptWork * int64(len(w.Applied))
	}
	for len(batch) < maxBatched {
		leaf := q.next()
		if leaf == nil {
			break
		}
		w := &leaf.requests[leaf.first]
		if w.gone != nil && w.gone.Load() {
			q.drop(leaf)
			continue
		}
		cost := q.cost(leaf)
		takes, only := b.pace.base+b.pace.takes(b.sent+work+cost), b.sent == 0 && len(batch) == 0
		if !w.Until.After(now) || !only && w.Until.Before(now.Add(takes)) {
			b.refused.Expired++
			w.answer <- Answer{Err: b.overload()}
			q.drop(leaf)
			continue
		}
		if len(batch) > 0 && work+cost > most {
			break
		}
		work += cost
		batch = append(batch, q.take(leaf))
	}
	if len(batch) == 0 {
		b.trips--
	}
	return batch
}

// holdsBack reports whether a round trip is held back until no other is under way, because the next one
// is to show what the way to the store takes. One that takes longer than is ever assumed is not
// waited for. The caller holds the lock.
func (b *batcher) holdsBack(now time.Time) bool {
	if b.sent == 0 || !b.pace.due() {
		b.held = time.Time{}
		return false
	}
	if b.held.IsZero() {
		b.held = now
	}
	return now.Sub(b.held) < b.pace.deadline/maxBase
}

// Load says how much waits for the store and how fast the store is: of several servers, the
// slowest.
type Load struct {
	Queued   int
	Refused  Refused
	Script   time.Duration // measured time of one script call on one bucket
	Pipeline int64         // the most script calls that a round trip carries at present
}

// Load returns the queue's load.
func (q *Queue) Load() Load { return q.lanes.load() }

func (b *batcher) load() Load {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent == 0 {
		b.pace.fade(b.on.Now())
	}
	return Load{Queued: b.fair.length, Refused: b.refused, Script: b.pace.takes(scriptWork),
		Pipeline: b.pace.pipelineWork() / scriptWork}
}
