package region

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/journal"
	"github.com/quotad/quotad/region/store"
)

const (
	tickEvery    = exchange.Interval * time.Microsecond
	drainEvery   = 10 * time.Millisecond // decisions are reported to the machine at most this often
	eventsAtOnce = 256                   // are heard before the clock is looked at again
)

// engine steps the exchange machine of a node and carries out its effects. Only its own goroutine touches the
// machine; effects run beside it and come back as events.
type engine struct {
	node    *Node
	machine *exchange.Machine
	begun   time.Time
	events  *events
	taken   func(exchange.Event) // takes events in place of the queue; nil: they are queued
	drain   chan struct{}        // something was observed
	moves   chan struct{}        // holds one for each pipeline under way that moves rights

	mu       sync.Mutex
	observed map[string]*exchange.Observed // since the last drain, by bucket id
	ages     []exchange.PeerAge            // as of the last tick or answer
	stats    exchange.Stats                // as of the last step

	storeAhead int64 // of the machine's time, microseconds, as of the last step
	storeTold  bool  // it is known

	replies     desk[exchange.Reply] // peers' messages being served
	testimonies desk[exchange.Testimonies]
	waiters     waiters
	work        sync.WaitGroup // effects under way

	refused  int64     // generations, as of the last step
	warned   time.Time // of the former
	warnedOf time.Time // of the latter
}

func newEngine(n *Node, o exchange.Options) *engine {
	return &engine{node: n, machine: exchange.New(n.config.Region, n.config.Node, o), begun: time.Now(),
		events: newEvents(), drain: make(chan struct{}, 1), moves: make(chan struct{}, movesUnderWay),
		observed: map[string]*exchange.Observed{}}
}

// now is the machine's time: microseconds of a clock that never goes back.
func (e *engine) now() int64 { return time.Since(e.begun).Microseconds() + 1 }

// run steps the machine until ctx ends, and waits for the effects under way.
func (e *engine) run(ctx context.Context) {
	defer e.work.Wait()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	drain := e.drain
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.events.more:
			e.hearSome(ctx)
		case <-drain:
			began := time.Now()
			e.report(ctx)
			drain = nil
			rest.Reset(max(drainEvery, time.Since(began))) // reports take at most half of the machine's time
		case <-rest.C:
			drain = e.drain
		case <-tick.C:
			e.report(ctx)
			e.step(ctx, exchange.Tick{Jitter: allocator.PPM*8/10 + rand.Int64N(allocator.PPM*4/10)})
		}
	}
}

// hearSome has the machine hear events that wait.
func (e *engine) hearSome(ctx context.Context) {
	for range eventsAtOnce {
		event, ok := e.events.next()
		if !ok {
			return
		}
		e.step(ctx, event)
	}
	e.events.wake() // the rest after a look at the clock
}

// post hands the machine an event; false: the queue is full and the event is dropped and counted.
func (e *engine) post(event exchange.Event) bool {
	if e.taken != nil {
		e.taken(event)
		return true
	}
	return e.events.post(event)
}

// deliver hands the machine an event that it counts on, such as the end of an effect: it waits for room.
func (e *engine) deliver(event exchange.Event) {
	if e.taken != nil {
		e.taken(event)
		return
	}
	e.events.deliver(event, e.node.closed)
}

// observe adds up what was decided, for the next report. It runs on the request path and does nothing else.
func (e *engine) observe(group []waiting, d algorithms.Decided) {
	e.mu.Lock()
	for i, a := range group[0].applied {
		o := e.observed[a.bucket.ID]
		if o == nil {
			o = &exchange.Observed{}
			e.observed[a.bucket.ID] = o
		}
		o.Bucket, o.State, o.Now = a.bucket, d.Buckets[i], d.Now
		for n, w := range group {
			switch answer := d.Answers[n]; {
			case w.cost > a.most(): // never admitted anywhere, so it is no demand
			case answer.Admitted && answer.Verdicts[i].Retry == 0:
				o.Admitted = min(o.Admitted+w.cost, algorithms.MaxUnits)
			case answer.Verdicts[i].Retry != 0:
				o.Denied = min(o.Denied+w.cost, algorithms.MaxUnits)
			}
		}
	}
	e.mu.Unlock()
	for i, a := range group[0].applied {
		e.node.seen.note(a.bucket, d.Buckets[i], d.Now)
	}
	select {
	case e.drain <- struct{}{}:
	default:
	}
}

// report tells the machine what was decided since the last report.
func (e *engine) report(ctx context.Context) {
	if all := e.observations(); len(all) > 0 {
		e.step(ctx, all)
	}
}

// observations returns what was decided since it was last asked, in no order.
func (e *engine) observations() exchange.Report {
	e.mu.Lock()
	observed := e.observed
	e.observed = make(map[string]*exchange.Observed, len(observed))
	e.mu.Unlock()
	all := make(exchange.Report, 0, len(observed))
	for _, o := range observed {
		all = append(all, *o)
	}
	return all
}

// hear steps the machine, at its time now, and takes over what it knows since.
func (e *engine) hear(now int64, event exchange.Event) exchange.Effects {
	if tick, ok := event.(exchange.Tick); ok {
		tick.Clock = e.node.now().UnixMicro()
		event = tick
	}
	out := e.machine.Step(now, event)
	e.mu.Lock()
	e.stats = e.machine.Stats()
	e.storeAhead, e.storeTold = e.machine.StoreClock()
	e.mu.Unlock()
	e.watchGenerations(event)
	switch event.(type) {
	case exchange.Tick, exchange.Answered, exchange.Stood: // what ages depend on: time, answers, and who the peers are
		ages := e.machine.Ages(now)
		e.mu.Lock()
		e.ages = ages
		e.mu.Unlock()
		e.node.setDegraded(ages)
		e.node.watchClocks(ages)
	}
	return out
}

// step steps the machine and starts what it answers.
func (e *engine) step(ctx context.Context, event exchange.Event) {
	out := e.hear(e.now(), event)
	for _, s := range out.Settled {
		e.waiters.wake(s.Bucket, s.Come)
	}
	if len(out.Lend) > 0 {
		e.work.Go(func() { e.lend(ctx, out.Lend) })
	}
	for _, r := range out.Record {
		e.work.Go(func() { e.record(ctx, r) })
	}
	for _, a := range out.Replies {
		e.replies.hand(a.ID, a.Reply)
		e.node.fails(AfterReply)
	}
	for _, c := range out.Calls {
		e.work.Go(func() { e.call(ctx, c) })
	}
	if len(out.Credits) > 0 {
		e.work.Go(func() { e.credit(ctx, out.Credits) })
	}
	for _, r := range out.Recalls {
		e.work.Go(func() { e.recall(ctx, r) })
	}
	for _, c := range out.Consults {
		e.work.Go(func() { e.consult(ctx, c) })
	}
	for _, t := range out.Testify {
		e.testimonies.hand(t.ID, t.Testimonies)
	}
	if len(out.Restores) > 0 {
		e.work.Go(func() { e.restore(ctx, out.Restores) })
	}
	for _, h := range out.Hints {
		e.node.broadcast(h)
	}
}

// lend runs the debits of one message in the store; a step has those of one message only.
func (e *engine) lend(ctx context.Context, lends []exchange.Lend) {
	rules := e.node.rules.Load()
	calls := make([]algorithms.Lend, len(lends))
	for i, l := range lends {
		calls[i] = algorithms.Lend{Fence: algorithms.Fence{Generation: l.Generation, Epoch: l.Bucket.Epoch},
			Target: rules.target(l.Bucket, e.node.seen.begin(l.Bucket)), Peer: l.Peer, Cell: l.Cell, Returned: l.Returned, Lent: l.Lent, Kept: l.Kept, Cap: l.Cap,
			Burst: l.Burst, KeptBurst: l.KeptBurst, CapBurst: l.CapBurst}
	}
	given := make([]algorithms.Given, len(lends))
	e.node.fails(BeforeDebit)
	for i := range given {
		given[i].Status = algorithms.StatusUnknown
	}
	inPieces(ctx, e.moves, calls, e.node.store.Lend, func(from int, results []store.Result[algorithms.Given]) {
		for i, res := range results {
			if res.Err == nil {
				given[from+i] = res.Value
			}
			g := given[from+i]
			e.noticed(ctx, lends[from+i].Bucket, g.Head, g.State)
		}
	})
	e.node.fails(AfterDebit)
	e.deliver(exchange.Lent{ID: lends[0].ID, Given: given})
}

// record makes rows durable before they are announced.
func (e *engine) record(ctx context.Context, r exchange.Record) {
	rows := make([]journal.Row, len(r.Rows))
	for i, row := range r.Rows {
		rows[i] = journal.Row(row)
	}
	err := e.node.journal.Record(ctx, rows)
	e.node.fails(AfterFsync)
	if err != nil && ctx.Err() == nil {
		e.node.log.Error("rights cannot be lent: the journal does not take rows", "err", err)
	}
	e.deliver(exchange.Recorded{ID: r.ID, OK: err == nil})
}

// call sends a message to a peer region.
func (e *engine) call(ctx context.Context, c exchange.Call) {
	limited, cancel := context.WithTimeout(ctx, microseconds(c.Timeout))
	defer cancel()
	reply, err := e.node.peers.Exchange(limited, c.Peer, c.Message)
	if err != nil {
		e.node.log.Debug("peer region did not answer", "region", c.Peer, "err", err)
		e.deliver(exchange.Unanswered{ID: c.ID})
		return
	}
	e.deliver(exchange.Answered{ID: c.ID, Reply: reply})
}

// credit tells the store what peers gave.
func (e *engine) credit(ctx context.Context, credits []exchange.Credit) {
	rules := e.node.rules.Load()
	calls := make([]algorithms.Credit, len(credits))
	for i, c := range credits {
		calls[i] = algorithms.Credit{Fence: algorithms.Fence{Generation: c.ForGeneration, Epoch: c.Bucket.Epoch},
			Target: rules.target(c.Bucket, e.node.seen.begin(c.Bucket)), Peer: c.Peer, PeerGeneration: c.Generation,
			Cell: c.Cell, Lent: c.Lent, Returned: c.Returned, Most: c.Most, Burst: c.Burst, MostBurst: c.MostBurst, At: c.At}
	}
	e.node.fails(BeforeCredit)
	inPieces(ctx, e.moves, calls, e.node.store.Credit, func(from int, results []store.Result[algorithms.Credited]) {
		for i, res := range results {
			result := res.Value
			if res.Err != nil {
				result = algorithms.Credited{Head: algorithms.Head{Status: algorithms.StatusUnknown}}
			}
			e.noticed(ctx, credits[from+i].Bucket, result.Head, result.State)
			e.deliver(exchange.Credited{Credit: credits[from+i], Result: result})
		}
	})
	e.node.fails(AfterCredit)
}

// noticed takes in what an answered call of the exchange showed of a bucket.
func (e *engine) noticed(ctx context.Context, b *exchange.Bucket, head algorithms.Head, state algorithms.State) {
	switch head.Status {
	case algorithms.StatusOK:
		e.node.seen.note(b, state, head.Now)
	case algorithms.StatusLost:
		e.node.lose(ctx, b, head.LostAt, head.Now)
	}
}

// serve answers a peer's message: it goes through the machine, the store and the journal before the reply leaves.
func (e *engine) serve(ctx context.Context, m exchange.Message) (exchange.Reply, error) {
	id, reply, leave := e.replies.wait()
	defer leave()
	if !e.post(e.asked(id, m)) {
		return exchange.Reply{}, fmt.Errorf("node %s has too much to do: ask again later", e.node.config.Node)
	}
	select {
	case answer := <-reply:
		return answer, nil
	case <-ctx.Done():
		return exchange.Reply{}, ctx.Err()
	}
}

// asked is a peer's message for the machine.
func (e *engine) asked(id uint64, m exchange.Message) exchange.Asked {
	r := e.node.rules.Load()
	buckets := make([]*exchange.Bucket, len(m.Asks))
	for i, a := range m.Asks {
		buckets[i] = r.find(a.Bucket)
	}
	return exchange.Asked{ID: id, Message: m, Buckets: buckets}
}

// snapshot returns the ages of peers and the counts as of the last step.
func (e *engine) snapshot() (ages []exchange.PeerAge, stats exchange.Stats, dropped int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ages, e.stats, e.events.lost()
}
