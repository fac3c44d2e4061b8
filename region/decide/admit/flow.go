package admit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/rights"
)

// Next is what a request needs next.
type Next int

const (
	Decided Next = iota // nothing: call Decision
	Asks                // the store's answer: call Ask
	Waits               // to wait for buckets, at most Patience, and then a call of Waited
)

// Flow is one request on its way to a decision. Apart from the store's answer in Ask, Flow waits
// for nothing by itself: Next says what the request needs, and the caller reports what came of it.
// A node blocks in between (Limiter.Check). A simulator lets other things happen. Not safe for
// concurrent use.
//
// Other limits documents may be open by now: then the request waits until this node knows them, and
// is matched anew. The store may have lost a bucket: then the request waits until the bucket is
// restored, and asks again. The store may have closed a bucket after a loss although no node had
// used it: then the request waits until the bucket is opened. This region may lack rights: then the
// request waits for other regions to lend some, if the limit says so. If the store denies the
// request after that, the decision is a denial.
type Flow struct {
	limiter *Limiter
	request Request
	commit  bool
	way     way
	next    Next

	said queue.Answer // the store's last answer
	err  error

	expires   time.Time     // before its caller stops waiting; zero: that is not known
	answering time.Duration // and for how long after that an answer is in time

	paid *Decision // admitted from chunks; nil: the store is to be asked

	room [4]*rules.Applied // for way.applied

	waitsFor reason
	wait     *rights.Wait
	asked    bool // of the store, or of what this node remembers
	lost     int  // how often the request waited for a lost bucket
	reasked  int  // how often it was matched anew, because the store was opened again
	opened   bool
	borrowed bool
	// paused is for how long it waits for the next cell, or waited; 0: it has not.
	paused time.Duration
}

// reason says what a request waits for.
type reason int

const (
	restored   reason = iota // a lost bucket to be restored
	opened                   // closed buckets that no node used to be opened
	rightsLent               // other regions to lend rights
	reopened                 // the store to be opened again, under other documents perhaps
	cellEnds                 // the cell to end, because what is lent now would come too late for it
)

// reasks bounds how often one request is matched anew. Two documents may be opened in a row, and
// the older of them closed.
const reasks = 3

// Begin returns the flow of a request. With commit, admission charges it. The error is a
// *invalid.Field.
func (l *Limiter) Begin(q Request, commit bool) (*Flow, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	f := &Flow{limiter: l, request: q, commit: commit}
	f.way = l.prepare(q, commit, f.room[:0])
	f.way.asked()
	if f.way.needsNoStore(f.request.Domain) {
		return f, nil
	}
	if f.way.spends(q.Receipt) {
		if d, paid := l.spend(f.way.Rules, f.way.Applied, f.way.Cost); paid {
			f.paid = &d
		}
	}
	if f.paid != nil {
		return f, nil
	}
	f.next = Asks
	return f, bounded(f.way.Applied)
}

// Next returns what the request needs next.
func (f *Flow) Next() Next { return f.next }

// Buckets returns the buckets of the limits that apply to the request.
func (f *Flow) Buckets() []*exchange.Bucket {
	all := make([]*exchange.Bucket, len(f.way.Applied))
	for i, a := range f.way.Applied {
		all[i] = a.Bucket
	}
	return all
}

// Ask asks the store to decide and waits for the answer, unless the node remembers a denial.
func (f *Flow) Ask(ctx context.Context) {
	if a, denied := f.remembered(); denied {
		f.answered(a, nil)
		return
	}
	f.answered(f.limiter.queue.Decide(ctx, f.way.Ask))
}

// answered takes the store's answer and finds out what the request needs next.
func (f *Flow) answered(a queue.Answer, err error) {
	f.said, f.err, f.next = a, err, Decided
	switch {
	case err != nil:
	case f.waitReopened():
	case f.borrowed:
	case a.Lost() != nil:
		f.waitRestored()
	case !f.waitOpened():
		f.borrow()
	}
}

// waitReopened makes a request wait until the store is opened again, if it is no longer as this
// node opened it. If other documents are open then, the request is matched anew. It returns false
// if the request need not wait, did so too often, or this node has stopped using its store.
func (f *Flow) waitReopened() bool {
	if !errors.Is(f.said.Err, store.ErrUnknownStore) || f.reasked == reasks ||
		f.limiter.tenure.Stopped() != nil {
		return false
	}
	f.reasked++
	wait := f.limiter.rights.Wait(0, rights.Reopened)
	f.waits(reopened, wait)
	if f.limiter.tenure.Rules() != f.way.Rules { // it is open again already
		f.Waited(true, false)
	}
	return true
}

// matchAnew has the request decided by the documents that are open now.
func (f *Flow) matchAnew() {
	came, until, ends := f.way.Came, f.way.Until, f.way.Ends
	f.way = f.limiter.prepare(f.request, f.commit, f.room[:0])
	f.way.Came, f.way.Until, f.way.Ends = came, until, ends
	if f.next = Asks; f.way.needsNoStore(f.request.Domain) {
		f.next = Decided
	}
}

// waitRestored has a lost bucket restored and makes the request wait for it. A request waits as
// often as it has buckets, at most.
func (f *Flow) waitRestored() {
	if f.lost == len(f.way.Applied) {
		return
	}
	f.lost++
	concerned := f.way.Applied
	if f.said.Only != nil {
		concerned = f.said.Only
	}
	b := concerned[f.said.Lost().Place].Bucket
	wait := f.limiter.rights.Wait(0, b.ID)
	if !f.limiter.rights.Lose(context.Background(), b, f.said.Err) {
		wait.Leave()
		return
	}
	f.waits(restored, wait)
}

// waitOpened makes the request wait until the closed buckets that nobody used are opened. It does
// so once. It returns false if there are none or the request cannot wait for them.
func (f *Flow) waitOpened() bool {
	closed := f.unused()
	if len(closed) == 0 || f.opened {
		return false
	}
	f.opened = true
	ids := make([]string, len(closed))
	for i, l := range closed {
		ids[i] = l.Bucket.ID
	}
	wait := f.limiter.rights.Wait(0, ids...)
	if !f.limiter.rights.AskWhoUsed(closed, f.said.Decided.Now) {
		wait.Leave()
		return false
	}
	f.waits(opened, wait)
	return true
}

func (f *Flow) waits(why reason, wait *rights.Wait) {
	f.waitsFor, f.wait, f.next = why, wait, Waits
}

// Awaited returns the ids of the buckets for which the request waits.
func (f *Flow) Awaited() []string { return f.wait.Buckets() }

// Over reports whether the wait is over, and if so whether asking the store once more may help. It
// looks at the buckets in order. The wait is over at the first for which asking does not help, or
// when all were settled.
func (f *Flow) Over() (helps, over bool) { return f.wait.Over() }

// Patience returns how long the request waits at most.
func (f *Flow) Patience() time.Duration {
	switch f.waitsFor {
	case rightsLent:
		return f.limiter.rights.Patience()
	case cellEnds:
		return f.paused
	}
	return f.limiter.deadline
}

// Waited goes on after a wait. helps says that all buckets were settled and that asking the store
// once more may help. timedOut says that the request's patience ended first. After a wait for
// rights the store is asked even then: some rights may have come, or the next cell may have begun.
func (f *Flow) Waited(helps, timedOut bool) {
	f.wait.Leave()
	f.wait, f.next = nil, Decided
	switch {
	case f.others() && (helps || timedOut) && !f.expired():
		f.next = Asks
		f.extend()
	case f.others():
	case f.waitsFor == reopened:
		// If the documents are the same, the store has lost data: then it has not decided.
		if helps && f.limiter.tenure.Rules().Epoch != f.way.Rules.Epoch {
			f.matchAnew()
		}
	case helps:
		f.next = Asks
	case f.waitsFor == opened:
		f.borrow()
	}
}

// others reports whether the request waits for other regions.
func (f *Flow) others() bool { return f.waitsFor == rightsLent || f.waitsFor == cellEnds }

// pause blocks until the wait is over, its time is over, or ctx ends.
func (f *Flow) pause(ctx context.Context) {
	patience := f.Patience()
	if !f.others() {
		patience = min(time.Until(f.way.Until), time.Until(f.way.Came.Add(f.limiter.deadline)))
	} else if !f.expires.IsZero() {
		patience = min(patience, time.Until(f.expires))
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	f.Waited(f.wait.Until(over.C, ctx.Done()))
}

// finish asks and waits until the request is decided.
func (f *Flow) finish(ctx context.Context) (Decision, error) {
	f.run(ctx)
	return f.Decision()
}

// run asks and waits until nothing is left to be done.
func (f *Flow) run(ctx context.Context) {
	for f.next != Decided {
		if f.next == Asks {
			f.Ask(ctx)
		} else {
			f.pause(ctx)
		}
	}
}

// Decision returns the decision, made by the store's last answer or without the store. The error is
// an *Overload, that of the context, or ErrClosed.
func (f *Flow) Decision() (Decision, error) {
	d, err := f.decision()
	if err != nil {
		return d, err
	}
	d.Epoch = f.way.Rules.Newest
	if f.way.lists != nil {
		d.Met = f.way.lists.met
	}
	if f.commit {
		f.limiter.accounts.count(&f.way, d)
	}
	return f.limiter.sign(d), nil
}

// decision returns the decision without what all decisions have.
func (f *Flow) decision() (Decision, error) {
	l, all := f.limiter, f.way.Applied
	if f.way.denied() {
		return Decision{Reason: Denied, Limits: f.way.uncounted(l.rights, Decision{})}, nil
	}
	if len(all) == 0 || f.way.stray != "" {
		if d := l.unmatched.decide(&f.way, f.request); len(all) == 0 || !d.Allowed {
			return d, nil
		}
	}
	if f.way.Rules.Serves() != nil {
		return f.excluded(), nil
	}
	if f.paid != nil {
		d := *f.paid
		if f.way.wantsStates() {
			d.Limits = f.way.uncounted(l.rights, d)
		}
		return d, nil
	}
	if f.err == nil && f.said.Err == nil {
		return f.counted(), nil
	}
	var d Decision
	if f.err == nil {
		l.metrics.storeFailures.Inc()
		d = l.withoutStore(&f.way)
	} else if watched := f.way.watched(); queue.IsOverload(f.err) && watched != nil {
		d = l.describe(Decision{Allowed: true, Reason: QueueFull}, watched)
	} else {
		return d, f.err
	}
	if f.way.wantsStates() {
		d.Limits = f.way.uncounted(l.rights, d)
	}
	return d, nil
}

// excluded returns the decision of a region that gets nothing of any limit. It does not use either what
// others lent it before it knew.
func (f *Flow) excluded() Decision {
	l, w := f.limiter, &f.way
	d := Decision{Reason: ExceedsRegionCapacity}
	decider := w.watched()
	if d.Allowed = decider != nil; d.Allowed {
		d.Reason = WithinLimit
	} else {
		decider = w.Applied[slices.IndexFunc(w.Applied, func(a *rules.Applied) bool { return !a.Limit.Shadow })]
	}
	d = l.describe(d, decider)
	if w.wantsStates() {
		d.Limits = w.uncounted(l.rights, d)
	}
	return d
}

// counted returns the decision by the store's answer.
func (f *Flow) counted() Decision {
	l := f.limiter
	d := l.judge(&f.way, f.said)
	if !d.FromMemory && f.way.spends(f.request.Receipt) {
		l.chunks.TopUp(&f.way.Ask)
	}
	l.metrics.sentAgain(f.said.Decided)
	if f.commit && d.Allowed && f.request.Receipt {
		d.Receipt = l.receipts.Give(f.way.Ask, f.said)
	}
	return d
}
