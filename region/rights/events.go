package rights

import (
	"sync"
	"sync/atomic"

	"github.com/quotad/quotad/allocator/exchange"
)

const (
	// maxResultsWaiting bounds the ends of effects that wait for the machine. Beyond it who has
	// one to report waits.
	maxResultsWaiting = 4096
	// maxAsksWaiting bounds the messages and questions of other nodes that wait. Beyond it they
	// are answered at once with "ask again later": the asker's call has a second or more, and what
	// waits longer than that is in vain.
	maxAsksWaiting = 1024
	// maxWantsWaiting bounds what this node's own requests have to say: rights they lack, buckets
	// that were lost. Beyond it a request is denied at once where it would have waited for rights.
	maxWantsWaiting = 4096
	// maxHintsWaiting bounds the hints that wait, one for each bucket and node: a newer takes the
	// place of an older. Beyond it hints of further buckets are dropped; they are said again within
	// seconds.
	maxHintsWaiting = 32_768
	// leastFirst is every how many events the order is turned round, so that no lane waits for
	// ever.
	leastFirst = 16
)

// lane is a kind of events for the machine, in the order in which they are heard: first what it
// counts on, then what others wait for, then what this node's requests wait for; hints only make
// plans better.
type lane int

const (
	resultLane lane = iota // ends of effects, answers of peers, and where the machine stands
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

// events are those that wait for the machine. Safe for concurrent use, but for next, which is the
// machine's driver's.
type events struct {
	waiting [hintLane]chan exchange.Event
	hints   hintQueue
	more    chan struct{} // something waits
	dropped [lanes]atomic.Int64
	taken   int // by next
}

func newEvents() *events {
	q := &events{more: make(chan struct{}, 1)}
	for l, most := range map[lane]int{resultLane: maxResultsWaiting, askLane: maxAsksWaiting, wantLane: maxWantsWaiting} {
		q.waiting[l] = make(chan exchange.Event, most)
	}
	return q
}

// post puts an event in its lane; false: that is full, and the event is dropped and counted.
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

// deliver puts an event that must not be dropped in its lane, waiting for room until closed.
func (q *events) deliver(e exchange.Event, closed <-chan struct{}) {
	select {
	case q.waiting[laneOf(e)] <- e:
		q.wake()
	case <-closed:
	}
}

// wake has who waits for more look.
func (q *events) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// next takes the first event of the first lane that has one; at times, of the last.
func (q *events) next() (exchange.Event, bool) {
	q.taken++
	if q.taken%leastFirst == 0 {
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

// lost returns how many events were dropped, of all lanes.
func (q *events) lost() (sum int64) {
	for l := range q.dropped {
		sum += q.dropped[l].Load()
	}
	return sum
}

// hintQueue is hints in the order in which their buckets and nodes were first heard of, each the
// newest. The zero value is ready to use. Safe for concurrent use.
type hintQueue struct {
	mu     sync.Mutex
	newest map[hintKey]exchange.Hint
	order  []hintKey
	begins int // order before it is taken
}

// put takes in a hint; false: there are too many.
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

// take returns the hint that waits longest.
func (q *hintQueue) take() (exchange.Hint, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.newest) == 0 {
		return exchange.Hint{}, false
	}
	key := q.order[q.begins]
	q.order[q.begins] = hintKey{}
	if q.begins++; 2*q.begins >= len(q.order) { // what was taken makes room
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
