package rights

import (
	"sync"
	"sync/atomic"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/base/repeat"
)

const (
	// maxResultsWaiting bounds the results of effects that wait for the machine. Beyond it,
	// whoever has a result to report waits.
	maxResultsWaiting = 4096
	// maxAsksWaiting bounds the messages and questions of other nodes that wait. Further ones are
	// answered at once with "ask again later": the asker's call times out after a second or more,
	// so an answer after a longer wait would be in vain.
	maxAsksWaiting = 1024
	// maxWantsWaiting bounds the events of this node's own requests that wait: rights they lack,
	// and buckets that were lost. Beyond it a request is denied at once instead of waiting for
	// rights.
	maxWantsWaiting = 4096
	// maxHintsWaiting bounds the hints that wait, one for each bucket and node: a newer hint takes
	// the place of an older. Hints of further buckets are dropped; their nodes repeat them within
	// seconds.
	maxHintsWaiting = 32_768
	// leastFirst says that every so many events the last lane comes first, so that no lane waits
	// for ever. It does not while a change of tenure waits: what came after the change is told
	// under the new tenure, and the machine would forget it.
	leastFirst = 16
)

// lane is a kind of events. The machine hears lanes in this order: first the results that it relies
// on, then what other nodes wait for, then what this node's requests wait for. Hints come last,
// because they only improve plans.
type lane int

const (
	resultLane lane = iota // results of effects, answers of peers, and changes of tenure
	askLane
	wantLane
	hintLane
	lanes
)

func (l lane) String() string { return [lanes]string{"results", "asks", "wants", "hints"}[l] }

// laneOf returns the lane of an event.
func laneOf(e exchange.Event) lane {
	switch e.(type) {
	case exchange.Asked, exchange.Questioned:
		return askLane
	case exchange.Wanted, exchange.Lost:
		return wantLane
	case exchange.Heard:
		return hintLane
	}
	return resultLane
}

// events holds the events that wait for the machine. It is safe for concurrent use.
type events struct {
	waiting [hintLane]chan exchange.Event
	hints   hintQueue
	changes atomic.Int64  // of tenure that wait
	more    chan struct{} // holds a value while an event may be waiting
	dropped [lanes]atomic.Int64
}

func newEvents() *events {
	q := &events{more: make(chan struct{}, 1)}
	for l, most := range map[lane]int{resultLane: maxResultsWaiting, askLane: maxAsksWaiting,
		wantLane: maxWantsWaiting} {
		q.waiting[l] = make(chan exchange.Event, most)
	}
	return q
}

// post puts an event in its lane. If the lane is full, post drops and counts the event and returns
// false.
func (q *events) post(e exchange.Event) bool {
	l := laneOf(e)
	if h, ok := e.(exchange.Heard); ok {
		ok = q.hints.put(h.Hint)
		return q.posted(l, ok)
	}
	select {
	case q.waiting[l] <- e:
		return q.posted(l, true)
	default:
		return q.posted(l, false)
	}
}

func (q *events) posted(l lane, ok bool) bool {
	if !ok {
		q.dropped[l].Add(1)
		return false
	}
	q.wake()
	return true
}

// deliver puts an event that must not be dropped in its lane. It waits for room until closed is
// closed.
func (q *events) deliver(e exchange.Event, closed <-chan struct{}) {
	if _, changes := e.(exchange.TenureChanged); changes {
		q.changes.Add(1)
	}
	select {
	case q.waiting[laneOf(e)] <- e:
		q.wake()
	case <-closed:
	}
}

// wake makes the reader of more look for events.
func (q *events) wake() { repeat.Signal(q.more) }

// next takes the first event of the first lane that has one, and at every leastFirst-th turn that of
// the last such lane. It returns false if no event waits.
func (q *events) next(turn int) (exchange.Event, bool) {
	if turn%leastFirst == 0 && q.changes.Load() == 0 {
		if h, ok := q.hints.take(); ok {
			return exchange.Heard{Hint: h}, true
		}
		for l := wantLane; l >= resultLane; l-- {
			if e, ok := q.first(l); ok {
				return e, true
			}
		}
		return nil, false
	}
	for l := range hintLane {
		if e, ok := q.first(l); ok {
			return e, true
		}
	}
	h, ok := q.hints.take()
	return exchange.Heard{Hint: h}, ok
}

func (q *events) first(l lane) (exchange.Event, bool) {
	select {
	case e := <-q.waiting[l]:
		if _, changes := e.(exchange.TenureChanged); changes {
			q.changes.Add(-1)
		}
		return e, true
	default:
		return nil, false
	}
}

// length returns how many events wait in a lane.
func (q *events) length(l lane) int {
	if l == hintLane {
		return q.hints.length()
	}
	return len(q.waiting[l])
}

// lost returns how many events of all lanes were dropped.
func (q *events) lost() (sum int64) {
	for l := range q.dropped {
		sum += q.dropped[l].Load()
	}
	return sum
}

// hintQueue holds the newest hint of each bucket and node, in the order in which the first hint of
// each came. The zero value is ready to use. It is safe for concurrent use.
type hintQueue struct {
	mu     sync.Mutex
	newest map[hintKey]exchange.Hint
	order  []hintKey
	begins int // how many of order, from the first on, were taken
}

// put takes in a hint. It returns false if hints of too many buckets and nodes wait.
func (q *hintQueue) put(h exchange.Hint) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := hintKey{h.Region, h.Node, h.Bucket}
	if _, waits := q.newest[key]; !waits {
		if len(q.newest) >= maxHintsWaiting {
			return false
		}
		if q.newest == nil {
			q.newest = map[hintKey]exchange.Hint{}
		}
		q.order = append(q.order, key)
	}
	q.newest[key] = h
	return true
}

// take returns the hint that has waited longest.
func (q *hintQueue) take() (exchange.Hint, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.newest) == 0 {
		return exchange.Hint{}, false
	}
	key := q.order[q.begins]
	q.order[q.begins] = hintKey{}
	if q.begins++; 2*q.begins >= len(q.order) { // drop the part of order that was taken
		q.order = append(q.order[:0], q.order[q.begins:]...)
		q.begins = 0
	}
	h := q.newest[key]
	delete(q.newest, key)
	return h, true
}

func (q *hintQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.newest)
}
