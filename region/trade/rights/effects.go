package rights

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// Lend runs the debits of one message in the store. All debits of a step are of the same message.
func (e *Engine) Lend(ctx context.Context, lends []exchange.Lend) {
	current := e.config.Tenure.Rules()
	calls := make([]algorithms.Lend, len(lends))
	for i, l := range lends {
		calls[i] = algorithms.Lend{Fence: algorithms.Fence{Generation: l.Generation, Epoch: l.Bucket.Epoch},
			Target: current.Target(l.Bucket, e.seen.begin(l.Bucket)), Debit: l.Debit}
	}
	given := make([]algorithms.Given, len(lends))
	e.fails(BeforeDebit)
	for i := range given {
		given[i].Head = unanswered
	}
	inPieces(ctx, e.moves, calls, e.config.Store.Lend,
		func(i int, res store.Result[algorithms.Given]) {
			e.noticed(ctx, lends[i].Bucket, res.Err, res.Value.State, res.Value.Now)
			given[i] = told(res, given[i])
		})
	e.fails(AfterDebit)
	e.deliver(exchange.Lent{ID: lends[0].ID, Given: given})
}

// Record makes rows durable in the journal before a reply announces them, and has the store
// remember how far the journal has come.
func (e *Engine) Record(ctx context.Context, r exchange.Record) {
	rows := make([]journal.Row, len(r.Rows))
	for i, row := range r.Rows {
		rows[i] = journal.Row(row)
	}
	err := e.config.Journal.Record(ctx, rows, e.config.Store.Seen()...)
	e.fails(AfterFsync)
	if err != nil && ctx.Err() == nil {
		e.config.Log.Error("rights cannot be lent: the journal does not take rows", "err", err)
	}
	noted := err == nil && e.config.Tenure.NoteJournal(ctx) == nil
	e.deliver(exchange.Recorded{ID: r.ID, OK: err == nil, Unnoted: !noted})
}

// call sends a message to a peer region and delivers the reply, or Unanswered.
func (e *Engine) call(ctx context.Context, c exchange.Call) {
	limited, cancel := context.WithTimeout(ctx, quantity.Duration(c.Timeout))
	defer cancel()
	reply, err := e.config.Peers.Exchange(limited, c.Peer, c.Message)
	if err != nil {
		e.config.Log.Debug("peer region did not answer", "region", c.Peer, "err", err)
		e.deliver(exchange.Unanswered{ID: c.ID})
		return
	}
	e.deliver(exchange.Answered{ID: c.ID, Reply: reply})
}

// Credit makes the store credit what peers gave.
func (e *Engine) Credit(ctx context.Context, credits []exchange.Credit) {
	current := e.config.Tenure.Rules()
	calls := make([]algorithms.Credit, len(credits))
	for i, c := range credits {
		calls[i] = algorithms.Credit{Fence: algorithms.Fence{Generation: c.ForGeneration, Epoch: c.Bucket.Epoch},
			Target: current.Target(c.Bucket, e.seen.begin(c.Bucket)), Announcement: c.Announcement}
	}
	e.fails(BeforeCredit)
	inPieces(ctx, e.moves, calls, e.config.Store.Credit,
		func(i int, res store.Result[algorithms.Credited]) {
			c := credits[i]
			// What was denied for want of rights may fit now.
			if a := current.Found(c.Bucket.ID); a != nil {
				a.Held.Forget(max(res.Value.Now, e.config.Store.Latest()))
			}
			e.noticed(ctx, c.Bucket, res.Err, res.Value.State, res.Value.Now)
			result := told(res, algorithms.Credited{Head: unanswered})
			e.deliver(exchange.Credited{Credit: c, Result: result})
		})
	e.fails(AfterCredit)
}

// noticed notes what a call of the exchange said about a bucket. The call ended with err, and with
// the bucket's state at the store time now.
func (e *Engine) noticed(ctx context.Context, b *exchange.Bucket, err error,
	state algorithms.State, now quantity.StoreTime) {
	if err != nil {
		e.Lose(ctx, b, err)
		return
	}
	e.seen.note(b, state, now)
}

// unanswered is the head of what the machine is told of a call that the store did not answer.
var unanswered = algorithms.Head{Status: algorithms.StatusUnknown}

// told returns what the machine is told of a call: the store's answer, which may be a refusal. If
// the store did not answer, that is none.
func told[R any](res store.Result[R], none R) R {
	if store.Answered(res.Err) {
		return res.Value
	}
	return none
}
