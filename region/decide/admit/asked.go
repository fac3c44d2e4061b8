package admit

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// DefaultWait is how long a request waits for its turn whose caller names no time.
	DefaultWait = time.Second
	// answerBefore is how long before the caller's deadline a request is decided, so that the answer
	// arrives in time: Envoy waits for 20 ms by default. Of a caller who has less than twice that
	// left it is half of what is left.
	answerBefore = 5 * time.Millisecond
	// answeredParts is the part of that time for which an answer is waited for that is on its way:
	// all but 1/answeredParts.
	answeredParts = 5
)

// waitUntil has the request be asked about until a time, and an answer that is on its way then be
// waited for a little longer: all but a fifth of the time that is left for answering.
func (w *waiting) waitUntil(until time.Time, answering time.Duration) {
	w.until, w.ends = until, until.Add(answering-answering/answeredParts)
}

// waits has the request wait from now on, for so long.
func (w waiting) waits(most time.Duration) waiting {
	w.came = time.Now()
	w.waitUntil(w.came.Add(most), answerBefore)
	return w
}

// waiting is a request on its way to the store.
type waiting struct {
	rules   *rules.Rules
	applied []*rules.Applied
	cost    quantity.Units
	costs   []quantity.Units // of each limit; nil: cost
	commit  bool
	chunk   bool            // it asks for a chunk
	ahead   bool            // its units are for Envoys, whose reports tell their demand
	once    string          // key under which it is charged once; empty: none
	caller  string          // who sent it; empty: unknown
	came    time.Time       // when it began to wait
	until   time.Time       // from then on the store is not asked, so that the answer is in time
	ends    time.Time       // from then on an answer is not waited for either
	gone    *atomic.Bool    // true: nobody waits for the answer any more; nil: somebody does
	answer  chan<- answered // buffered, so that an answer to a caller that has gone blocks nobody

	hash uint64 // of its buckets' keys; 0: it has not queued
	work int64  // what it counts in the queue, in units of work
}

// costOf returns what the request costs of one of its limits.
func (w *waiting) costOf(i int) quantity.Units {
	if w.apart() {
		return w.costs[i]
	}
	return w.cost
}

// apart reports whether the request has a cost for each limit.
func (w *waiting) apart() bool { return w.costs != nil }

// answered is the store's answer to one request.
type answered struct {
	decided algorithms.Decided // answers to all requests of the script call
	index   int                // place of this request in decided.Answers
	// times holds the store's time for each bucket if the buckets are in several shards. nil:
	// decided.Now holds for all.
	times []quantity.StoreTime
	// earlier says of each bucket, if they are in several shards, whether an earlier attempt of the
	// request was charged there, and not this one. nil: none was.
	earlier []bool
	// part holds the limits that the answer is about if those are not all of the request's. nil:
	// all.
	part []*rules.Applied
	// fromMemory says that the node answered, by what it remembers of the store's answers.
	fromMemory bool
	of         heardOf
	err        error
}

// at returns the store's time at which a bucket was decided, in microseconds since 1970.
func (a answered) at(bucket int) quantity.StoreTime {
	if a.times != nil {
		return a.times[bucket]
	}
	return a.decided.Now
}

// lost returns the bucket that must be restored before the store can decide; nil: there is none.
func (a answered) lost() *store.LostBucket {
	lost, _ := errors.AsType[*store.LostBucket](a.err)
	return lost
}
