package region

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

// Stepped is a node in which nothing runs by itself and nothing is said to other nodes: whoever drives it says what happens
// next, and when. What a Node does with its machine, store and journal is done by the same code; a simulator thereby has
// whole nodes, and can end one between any two of its acts. Not safe for concurrent use.
type Stepped struct {
	node   *Node
	events []exchange.Event
	since  map[store.Shard]time.Time // that a server does not answer
}

// NewStepped returns a node whose store is open. Of c what concerns other nodes is not used: listeners, addresses, dialer
// and keys. The machine is told where it stands by the first of Events.
func NewStepped(c Config) (*Stepped, error) {
	n, err := newNode(c, 1) // what comes is done at once
	if err != nil {
		return nil, err
	}
	s := &Stepped{node: n, since: map[store.Shard]time.Time{}}
	n.batcher.trips = 0 // whoever decides makes the round trip itself
	n.engine.taken = func(e exchange.Event) { s.events = append(s.events, e) }
	return s, n.takeUp(context.Background())
}

// Events returns what the machine is to hear because of what was done since it was last asked, in order.
func (s *Stepped) Events() []exchange.Event {
	all := s.events
	s.events = nil
	return all
}

// Step has the machine hear an event at node time now, microseconds of a clock that never goes back.
func (s *Stepped) Step(now int64, e exchange.Event) exchange.Effects {
	return s.node.engine.hear(now, e)
}

// Report is what was decided since the last report, for the machine to hear; empty: nothing was.
func (s *Stepped) Report() exchange.Report {
	all := s.node.engine.observations()
	slices.SortFunc(all, func(a, b exchange.Observed) int { return cmp.Compare(a.Bucket.ID, b.Bucket.ID) })
	return all
}

// Asked is a peer's message as the machine hears it, under a number that its Answer will have.
func (s *Stepped) Asked(id uint64, m exchange.Message) exchange.Asked {
	return s.node.engine.asked(id, m)
}

// Questioned is the question of a node that recovers as the machine hears it, under a number that its Testify will have.
func (s *Stepped) Questioned(id uint64, q exchange.Question) exchange.Questioned {
	return s.node.engine.questioned(id, q)
}

// Lend carries the debits of one message out.
func (s *Stepped) Lend(all []exchange.Lend) { s.node.engine.lend(context.Background(), all) }

// Record makes rows durable.
func (s *Stepped) Record(r exchange.Record) { s.node.engine.record(context.Background(), r) }

// Credit carries credits out.
func (s *Stepped) Credit(all []exchange.Credit) { s.node.engine.credit(context.Background(), all) }

// Consult looks up what is asked for.
func (s *Stepped) Consult(c exchange.Consult) { s.node.engine.consult(context.Background(), c) }

// Restore has the store restore buckets.
func (s *Stepped) Restore(all []exchange.Restore) { s.node.engine.restore(context.Background(), all) }

// PublishHint returns a hint as gossip carries it.
func (s *Stepped) PublishHint(h exchange.Hint) ([]byte, error) { return s.node.hints.publish(h) }

// MergeHints takes in what gossip carried.
func (s *Stepped) MergeHints(b []byte) error {
	_, err := s.node.hints.Merge(b)
	return err
}

// Reopen opens the store anew if it answered that it is not this node's any more; after an error it is due again.
func (s *Stepped) Reopen() error {
	select {
	case <-s.node.reopen:
	default:
		return nil
	}
	err := s.node.openStore(context.Background(), false)
	if err != nil {
		s.node.reopen <- struct{}{}
	}
	return err
}

// TryAgain tries a store that did not answer.
func (s *Stepped) TryAgain() { s.node.tryAgain(context.Background(), s.since) }

// KeepBooks charges in the store what was admitted without it.
func (s *Stepped) KeepBooks() { s.node.book(context.Background()) }

// CloseBooks does what a node does last that is asked to end.
func (s *Stepped) CloseBooks() error { return s.node.closeBooks(context.Background()) }

// Checkpoint has the store show its time, and writes down what use has moved.
func (s *Stepped) Checkpoint() {
	s.node.beat(context.Background())
	s.node.checkpoint(context.Background(), false)
}

// Forget drops what weighs no more, from memory and journal.
func (s *Stepped) Forget() {
	now := s.node.now()
	s.node.hints.forget(now)
	s.node.fallback.forget(now)
	s.node.seen.forget()
	s.node.prune()
}

// Adopt puts another policy document in force, trying once.
func (s *Stepped) Adopt(d *policy.Document) error {
	r, err := rules.New(d, s.node.config.Region, s.node.store.Shards())
	if err != nil {
		return err
	}
	return s.node.adopt(context.Background(), r)
}

// Refund takes back what a decision charged; see Node.Refund.
func (s *Stepped) Refund(receipt string) (Refunded, error) {
	return s.node.Refund(context.Background(), receipt)
}

// Buckets are those of the limits that apply to a request, as the exchange knows them.
func (s *Stepped) Buckets(q Request) []*exchange.Bucket {
	var all []*exchange.Bucket
	for _, a := range s.node.rules.Load().Match(q.Domain, q.Descriptors) {
		all = append(all, a.Bucket)
	}
	return all
}

// Peers returns the ages of the peers' last answers, as of the last step.
func (s *Stepped) Peers() []exchange.PeerAge {
	ages, _, _ := s.node.engine.snapshot()
	return ages
}

// Stats returns what the machine has done, as of the last step.
func (s *Stepped) Stats() exchange.Stats {
	_, stats, _ := s.node.engine.snapshot()
	return stats
}

// Key returns the key of a bucket in the store.
func (s *Stepped) Key(id string) string { return s.node.rules.Load().Key(id) }

// Known returns the store time until which this node knows a bucket to be in the store: only until then does it notice that it
// was deleted.
func (s *Stepped) Known(id string) int64 { return s.node.seen.known(id) }

// Epoch returns that of the document this node works under.
func (s *Stepped) Epoch() string { return s.node.rules.Load().Epoch }

// Generation returns the generation of the store that this node works under.
func (s *Stepped) Generation() uint64 { return s.node.store.Generation() }

// Waiting is a request that waits: for a lost bucket to be restored, or for rights to be borrowed. Again must be called,
// once, when a bucket of Buckets is Settled, or when patience is over.
type Waiting struct {
	Buckets  []string
	Patience time.Duration // after which nothing is waited for any more
	Borrows  bool          // rights are waited for, not a bucket: what has come when patience is over may do

	request  Request
	way      waiting
	lost     int  // how often a lost bucket was waited for
	opened   bool // closed buckets that nobody used were waited for
	answered answered
	leave    []func()
}

// Check decides a request as Node.Check does, but does not wait: it returns either a decision or what to wait for.
func (s *Stepped) Check(q Request) (Decision, *Waiting, error) {
	n := s.node
	if err := q.Validate(); err != nil {
		return Decision{}, nil, err
	}
	all := n.rules.Load().Match(q.Domain, q.Descriptors)
	if len(all) == 0 {
		return n.sign(Decision{Allowed: true, Reason: NoLimit}), nil, nil
	}
	if err := bounded(all); err != nil {
		return Decision{}, nil, err
	}
	w := &Waiting{request: q, way: waiting{rules: n.rules.Load(), applied: all, cost: q.Cost, commit: true}}
	if q.ID != "" {
		w.way.once = onceKey(q, all)
	}
	return s.decide(w)
}

// Again goes on with a request that waited: come says that deciding once more may help.
func (s *Stepped) Again(w *Waiting, come bool) (Decision, *Waiting, error) {
	for _, leave := range w.leave {
		leave()
	}
	w.leave, w.Buckets = nil, nil
	if come {
		return s.decide(w)
	}
	return s.finish(w)
}

// decide has the store decide.
func (s *Stepped) decide(w *Waiting) (_ Decision, _ *Waiting, err error) {
	n := s.node
	w.way.until = time.Now().Add(time.Hour) // no store of a simulation is late by the wall clock
	w.answered, err = n.decide(context.Background(), w.way)
	var full *queueFull
	switch {
	case errors.As(err, &full):
		return n.sign(n.overflow(w.way.applied, full.retry)), nil, nil
	case err != nil:
		return Decision{}, nil, err
	case w.answered.lost() && !w.Borrows && w.lost < len(w.way.applied):
		w.lost++
		return s.recover(w)
	case !w.Borrows:
		if closed := n.unused(w.way, w.answered); len(closed) > 0 && !w.opened && n.askWhoUsed(closed, w.answered.decided.Now) {
			w.opened, w.Patience = true, n.deadline
			for _, l := range closed {
				w.Buckets = append(w.Buckets, l.Bucket.ID)
			}
			return Decision{}, w, nil
		}
		if lacking := w.way.lacking(w.answered); len(lacking) > 0 {
			return s.borrow(w, lacking)
		}
	}
	return s.finish(w)
}

// recover waits for a lost bucket.
func (s *Stepped) recover(w *Waiting) (Decision, *Waiting, error) {
	a := w.answered
	b := w.way.applied[a.decided.Lost].Bucket
	if !s.node.lose(context.Background(), b, a.decided.LostAt, a.decided.Now) {
		return s.finish(w)
	}
	w.Buckets, w.Patience = []string{b.ID}, s.node.deadline
	return Decision{}, w, nil
}

// borrow waits for rights of other regions.
func (s *Stepped) borrow(w *Waiting, lacking []lack) (Decision, *Waiting, error) {
	e := s.node.engine
	w.Borrows, w.Patience = true, e.patience()
	for _, l := range lacking {
		one := &waiter{cost: w.request.Cost, woken: make(chan bool, 1)}
		units := min(e.waiters.add(l.bucket.ID, one), l.bucket.Limit)
		w.leave = append(w.leave, func() { e.waiters.remove(l.bucket.ID, one) })
		w.Buckets = append(w.Buckets, l.bucket.ID)
		e.post(exchange.Wanted{Bucket: l.bucket, Units: units, State: l.state, Now: w.answered.decided.Now})
	}
	return Decision{}, w, nil
}

// finish words the last answer of the store, or decides without it.
func (s *Stepped) finish(w *Waiting) (Decision, *Waiting, error) {
	n, all, a := s.node, w.way.applied, w.answered
	if !a.ok() {
		n.metrics.storeFailures.Inc()
		return n.sign(n.withoutStore(w.request, all, true)), nil, nil
	}
	d := n.judge(w.request.Cost, all, a)
	if d.Allowed && w.request.Receipt {
		d.Receipt = n.receipt(w.request, all, a)
	}
	return n.sign(d), nil, nil
}
