package queue

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
	// AnswerBefore is how long before the caller's deadline a request is decided, so that the answer
	// arrives in time: Envoy waits for 20 ms by default. Of a caller who has less than twice that
	// left it is half of what is left.
	AnswerBefore = 5 * time.Millisecond
	// answeredParts is the part of that time for which an answer is waited for that is on its way:
	// all but 1/answeredParts.
	answeredParts = 5
)

// Ask is a request for the store to decide.
type Ask struct {
	Rules   *rules.Rules
	Applied []*rules.Applied // the limits that apply to it
	Cost    quantity.Units
	// Costs holds the cost of each limit; nil: Cost. One of 0 asks whether a unit is left, and charges
	// nothing: the charge follows, since what it costs is known only afterwards. Of a limit that is
	// charged always it is demand of a usual charge.
	Costs []quantity.Units
	// Portions holds the part of each limit's rights that the request may use (classes); nil: all.
	Portions []quantity.PPM
	Commit   bool // it is charged if it is admitted
	Chunk    bool // its units are for later requests, which are admitted without the store
	Ahead    bool // its units are for Envoys, whose reports tell their demand
	// Charge says that the costs were known only afterwards: all limits are charged always, whatever
	// is left.
	Charge bool
	Once   string    // key under which it is charged once (store.OnceKey); empty: none
	Caller string    // who sent it; empty: unknown
	Came   time.Time // when it began to wait
	Until  time.Time // from then on the store is not asked, so that the answer is in time
	Ends   time.Time // from then on an answer is not waited for either

	gone   *atomic.Bool  // true: nobody waits for the answer any more; nil: somebody does
	answer chan<- Answer // buffered, so that an answer to a caller that has gone blocks nobody
	hash   uint64        // of its buckets' keys; 0: it has not queued
	work   int64         // what it counts in the queue, in units of work
}

// Waits returns the request as one that waits from a time on, for so long.
func (w Ask) Waits(now time.Time, most time.Duration) Ask {
	w.Came = now
	w.WaitUntil(w.Came.Add(most), AnswerBefore)
	return w
}

// WaitUntil has the request be asked about until a time, and an answer that is on its way then be
// waited for a little longer: all but a fifth of the time that is left for answering.
func (w *Ask) WaitUntil(until time.Time, answering time.Duration) {
	w.Until, w.Ends = until, until.Add(answering-answering/answeredParts)
}

// CostOf returns what the request costs of one of its limits.
func (w *Ask) CostOf(i int) quantity.Units {
	if w.Apart() {
		return w.Costs[i]
	}
	return w.Cost
}

// PortionOf returns the part of one of its limits' rights that the request may use.
func (w *Ask) PortionOf(i int) quantity.PPM {
	if w.Portions == nil {
		return algorithms.Whole
	}
	return w.Portions[i]
}

// Apart reports whether the request has a cost for each limit.
func (w *Ask) Apart() bool { return w.Costs != nil }

// Answer is what the store said of one request.
type Answer struct {
	Decided algorithms.Decided // answers to all requests of the script call
	Index   int                // place of this request in Decided.Answers
	// Times holds the store's time for each bucket if the buckets are in several shards. nil:
	// Decided.Now holds for all.
	Times []quantity.StoreTime
	// Earlier says of each bucket, if they are in several shards, whether an earlier attempt of the
	// request was charged there, and not this one. nil: none was.
	Earlier []bool
	// Only holds the limits that the answer is about if those are not all of the request's. nil:
	// all.
	Only []*rules.Applied
	// FromMemory says that the node answered, by what it remembers of the store's answers.
	FromMemory bool
	Err        error // why the store did not decide; nil: it did

	of heardOf
}

// Own returns the store's answer to this request. It exists if Err is nil.
func (a *Answer) Own() *algorithms.Answer { return &a.Decided.Answers[a.Index] }

// Admitted reports whether the store admitted the request.
func (a *Answer) Admitted() bool { return a.Err == nil && a.Own().Admitted }

// At returns the store's time at which a bucket was decided.
func (a *Answer) At(bucket int) quantity.StoreTime {
	if a.Times != nil {
		return a.Times[bucket]
	}
	return a.Decided.Now
}

// Lost returns the bucket that must be restored before the store can decide; nil: there is none.
func (a *Answer) Lost() *store.LostBucket {
	lost, _ := errors.AsType[*store.LostBucket](a.Err)
	return lost
}
