package admit

import (
	"errors"
	"hash/maphash"
	"time"
)

// queueFull says that a request may not wait for the store, because it could not be decided in time. It is denied as
// queue_full, whatever on_store_failure says: the store is there, and busy.
type queueFull struct {
	retry time.Duration // until what waits before it will have been decided
}

func (e *queueFull) Error() string { return "too many requests wait for the store" }

func isQueueFull(err error) bool {
	var full *queueFull
	return errors.As(err, &full)
}

// Refused counts the requests that were answered queue_full, by why.
type Refused struct {
	Full    uint64 // there was no place in the queue, or it was given to a shorter flow
	Time    uint64 // they would not have been decided in time
	Expired uint64 // they waited until they could not be any more
	Late    uint64 // script calls: sent, and answered too late by a store that answered others
	Waited  uint64 // their time was over before they were answered
}

// wait puts a request into the queue, if it can be decided in time there: before its deadline, less a part for what is
// not the store's work. The lock is held.
func (b *batcher) wait(w waiting, now time.Time) error {
	w.hash = b.hashOf(&w)
	ahead := b.sent + b.queue.ahead(&w)
	together := min(b.pace.pipelineWork(), b.queue.root.work) // what comes back with it
	takes := b.pace.base + b.pace.takes(ahead+together)
	if w.until.Sub(now) < takes+b.pace.margin() {
		b.refused.Time++
		return &queueFull{retry: takes}
	}
	gone, full := b.queue.push(w)
	if !full {
		return nil
	}
	b.refused.Full++
	err := &queueFull{retry: takes}
	if gone.answer == w.answer {
		return err
	}
	gone.answer <- answered{err: err}
	return nil
}

// busyParts is the part of the time that requests may wait, which a caller's may fill before its batches are refused unread.
const busyParts = 2

// Busy says whether so much of a caller waits for the store that a batch of it is better refused before it is read, and when
// to come again. A single request costs little to read, and may be of a limit for which nothing waits: it is not asked for.
func (l *Limiter) Busy(caller string) (retry time.Duration, busy bool) { return l.batcher.busy(caller) }

func (b *batcher) busy(caller string) (retry time.Duration, busy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.queue.flows[flowID{caller: caller}]
	if own == nil {
		return 0, false
	}
	takes := b.pace.takes(b.sent + min(own.work*b.queue.root.children, b.queue.root.work))
	return takes, takes > (b.pace.deadline-b.pace.margin())/busyParts
}

// hashOf returns a hash of a request's buckets.
func (b *batcher) hashOf(w *waiting) uint64 {
	var h uint64
	for i := range w.applied {
		h = h*31 + maphash.String(b.seed, w.applied[i].Target.Key)
	}
	return h
}

// outwaited says what a request is told whose time is over while the store answers others.
func (b *batcher) outwaited() *queueFull {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused.Waited++
	return &queueFull{retry: b.pace.takes(b.sent + b.queue.root.work)}
}

// take takes what the next round trip carries: as much work as a pipeline may have, at least one request. What cannot be
// decided in time any more is refused. With nothing left to carry the round trip ends.
func (b *batcher) take() []waiting {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue
	q.trip++
	now, most, work := time.Now(), b.pipelineWork(), int64(0)
	batch := make([]waiting, 0, min(q.length, maxBatched))
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
		if takes := b.pace.takes(b.sent + work + cost); w.until.Before(now.Add(takes)) {
			b.refused.Expired++
			w.answer <- answered{err: &queueFull{retry: takes}}
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

// Load is what waits for the store, and how fast that is.
type Load struct {
	Queued   int
	Refused  Refused
	Script   time.Duration // that one script call takes, as measured
	Pipeline int64         // the most script calls of a round trip, at present
}

// Load returns the limiter's.
func (l *Limiter) Load() Load { return l.batcher.load() }

func (b *batcher) load() Load {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Load{Queued: b.queue.length, Refused: b.refused, Script: b.pace.takes(scriptWork),
		Pipeline: b.pace.pipelineWork() / scriptWork}
}
