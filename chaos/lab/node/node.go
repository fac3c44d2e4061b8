// Package node provides a node of a region that is stepped by hand. Nothing runs in it by itself,
// and it sends nothing to other nodes. Its driver decides what happens next, and when. Its work on
// machine, store and journal is done by the code of package region. So a simulator has whole nodes,
// and can end one between any two of its acts.
package node

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
	"github.com/quotad/quotad/region/trade/rights"
)

// Stepped is a node that is stepped by hand. Not safe for concurrent use.
type Stepped struct {
	config  region.Config
	runs    *routines
	node    *region.Node
	tenure  *tenure.Tenure
	rights  *rights.Stepper
	limiter *admit.Limiter
	events  []exchange.Event
	silent  map[store.Shard]time.Time // since when servers have not answered
}

// New returns a node whose store is open. It ignores the parts of c that concern other nodes:
// listeners, addresses, dialer and keys. The first of Events tells the machine under which tenure
// it may use the store. after calls a function after a time, unless the node ends before.
func New(c region.Config, after func(d time.Duration, do func())) (*Stepped, error) {
	s := &Stepped{config: c, silent: map[store.Shard]time.Time{},
		runs: &routines{elapsed: c.Elapsed, after: after}}
	var err error
	s.node, err = region.New(c, region.Stepping{On: s.runs,
		Taken: func(e exchange.Event) { s.events = append(s.events, e) }})
	if err != nil {
		return nil, err
	}
	t, r, l := s.node.Wings()
	s.tenure, s.rights, s.limiter = t, r.Stepper(), l
	return s, s.tenure.Open(context.Background())
}

// Begin has the node ask its store, each server of it in a lane of its own. Requests of before wait.
func (s *Stepped) Begin() {
	s.limiter.Queue().Begin()
	s.limiter.Queue().Sort(context.Background())
}

// Run calls f, in which the node may wait for its store, and returns when f waits or has returned.
// Check, CheckTogether, Again, Assign and CloseBooks are called in it. What waits goes on by itself,
// by the function that New was given.
func (s *Stepped) Run(f func()) { s.runs.run(f) }

// Waits has what Run runs wait for a time, as a call to another process does. Outside of Run it does
// nothing.
func (s *Stepped) Waits(d time.Duration) {
	if s.runs.running != nil {
		s.runs.wait(d, nil)
	}
}

// End ends the node as the end of its process does: of what waits nothing is carried out.
func (s *Stepped) End() { s.runs.end() }

// Events returns, in order, the events that the node's work has produced for the machine since the
// last call.
func (s *Stepped) Events() []exchange.Event {
	all := s.events
	s.events = nil
	return all
}

// Step has the machine hear an event at node time now, microseconds of a clock that never goes
// back.
func (s *Stepped) Step(now quantity.NodeTime, e exchange.Event) exchange.Effects {
	return s.rights.Hear(now, e)
}

// Report returns what was decided since the last report, for the machine; empty: nothing.
func (s *Stepped) Report() exchange.Report {
	all := s.rights.Observations()
	slices.SortFunc(all,
		func(a, b exchange.Observed) int { return cmp.Compare(a.Bucket.ID, b.Bucket.ID) })
	return all
}

// Asked returns the event for a peer's message. id is the number that the Answer will have.
func (s *Stepped) Asked(id uint64, m exchange.Message) exchange.Asked {
	return s.rights.Asked(id, m)
}

// Questioned returns the event for the question of a recovering node. id is the number that the
// Testify will have.
func (s *Stepped) Questioned(id uint64, q exchange.Question) exchange.Questioned {
	return s.rights.Questioned(id, q)
}

// Lend carries out the debits of one message.
func (s *Stepped) Lend(all []exchange.Lend) { s.rights.Lend(context.Background(), all) }

// Record makes rows durable.
func (s *Stepped) Record(r exchange.Record) { s.rights.Record(context.Background(), r) }

// Credit carries out credits.
func (s *Stepped) Credit(all []exchange.Credit) { s.rights.Credit(context.Background(), all) }

// Consult looks up what a Consult asks for.
func (s *Stepped) Consult(c exchange.Consult) { s.rights.Consult(context.Background(), c) }

// Restore has the store restore buckets.
func (s *Stepped) Restore(all []exchange.Restore) { s.rights.Restore(context.Background(), all) }

// PublishHint encodes a hint for gossip.
func (s *Stepped) PublishHint(h exchange.Hint) ([]byte, error) {
	return s.rights.Hints().Publish(h)
}

// MergeHints merges gossiped hints.
func (s *Stepped) MergeHints(b []byte) error {
	_, err := s.rights.Hints().Merge(b)
	return err
}

// Reopen opens the store again if that is due. After an error it is still due.
func (s *Stepped) Reopen() error {
	select {
	case <-s.tenure.Due():
	default:
		return nil
	}
	err := s.tenure.OpenOnce(context.Background())
	if err != nil {
		s.tenure.Reopen()
	}
	return err
}

// TryAgain tries stores that did not answer.
func (s *Stepped) TryAgain() { s.limiter.Queue().TryAgain(context.Background(), s.silent) }

// BookLocal charges to the store what was admitted without it.
func (s *Stepped) BookLocal() { s.limiter.Local().Book(context.Background()) }

// ReturnChunks gives prefetched units that are over back to the store.
func (s *Stepped) ReturnChunks() { s.limiter.Chunks().ReturnOver(context.Background(), false) }

// CloseBooks does the last work of a node that shuts down in order.
func (s *Stepped) CloseBooks() error {
	s.limiter.Chunks().ReturnAll(context.Background())
	err := s.limiter.Local().BookAll(context.Background())
	s.rights.Checkpoint(context.Background(), true)
	return err
}

// Checkpoint reads the store's time, and writes checkpoints of changed use to the journal.
func (s *Stepped) Checkpoint() {
	s.tenure.Beat(context.Background())
	s.rights.Checkpoint(context.Background(), false)
}

// CopyTo has other nodes, of the region or of others, keep what this one has seen. One that is nil does
// not answer.
func (s *Stepped) CopyTo(mates map[copies.Mate]*Stepped) {
	all := slices.SortedFunc(maps.Keys(mates), func(a, b copies.Mate) int { return cmp.Compare(a.Address, b.Address) })
	s.rights.CopyBy(all, func(mate copies.Mate, p copies.Part) (uint64, error) {
		switch to := mates[mate]; {
		case to == nil:
			return 0, errors.New("it does not answer")
		case mate.Region != s.config.Region:
			return to.rights.CopyElsewhere(context.Background(), p)
		default:
			return to.rights.CopyIn(p)
		}
	})
}

// ReadStore reads on what the store has of long windows, as long as the journal is not whole.
func (s *Stepped) ReadStore() { s.rights.ReadOn(context.Background()) }

// Whole reports whether the journal has all since the store last lost data.
func (s *Stepped) Whole() bool { return s.config.Journal.WholeSince() <= s.tenure.LostAt() }

// Gone returns the names of nodes of which this one has read what they did, since they are gone.
func (s *Stepped) Gone() []string { return s.rights.Gone() }

// Forget drops what no longer weighs from memory and journal.
func (s *Stepped) Forget() { s.node.Forget(s.config.Now()) }

// Review takes in what was heard of limits documents.
func (s *Stepped) Review() { s.tenure.Review(context.Background()) }

// Source returns the text of a limits document that is open in the node's region, or nil.
func (s *Stepped) Source(digest [32]byte) []byte { return s.tenure.Source(digest) }

// Find returns the bucket with an id under the documents that are open, or nil.
func (s *Stepped) Find(id string) *exchange.Bucket { return s.tenure.Rules().Find(id) }

// Adopt tries once to open another limits document.
func (s *Stepped) Adopt(d *policy.Document) error {
	return s.tenure.AdoptOnce(context.Background(), d)
}

// Settled settles what a decision charged by what was used; see [receipts.Receipts.Settle].
func (s *Stepped) Settled(receipt string, used quantity.Units) (receipts.Settled, error) {
	return s.limiter.Receipts().Settle(context.Background(), receipt, used)
}

// Reset clears the use of one bucket; see [admit.Limiter.Reset].
func (s *Stepped) Reset(limit string, q admit.Request) error {
	_, err := s.limiter.Reset(context.Background(), limit, q.Domain, q.Descriptors)
	return err
}

// Waive takes an operator's word about all losses of the store so far; see [region.Node.Waive].
func (s *Stepped) Waive(ctx context.Context) error { return s.node.Waive(ctx) }

// LearnWaived has the node look what its store remembers of such a word, if it waits for something.
func (s *Stepped) LearnWaived() { s.tenure.LearnWaived(context.Background()) }

// Buckets returns the buckets of the limits that apply to a request, as the exchange knows them.
func (s *Stepped) Buckets(q admit.Request) []*exchange.Bucket {
	f, err := s.limiter.Begin(q, false)
	if err != nil {
		return nil
	}
	return f.Buckets()
}

// Peers returns the ages of the peers' last answers, as of the last step.
func (s *Stepped) Peers() []exchange.PeerAge {
	ages, _, _ := s.rights.Snapshot()
	return ages
}

// Stats returns what the machine has done, as of the last step.
func (s *Stepped) Stats() exchange.Stats {
	_, stats, _ := s.rights.Snapshot()
	return stats
}

// Key returns the key of a bucket in the store.
func (s *Stepped) Key(id string) string { return s.tenure.Rules().Key(id) }

// ExistsUntil returns the store time (µs) until which this node knows that a bucket is in the
// store. Only until then does the node notice that the bucket was deleted.
func (s *Stepped) ExistsUntil(id string) quantity.StoreTime { return s.rights.ExistsUntil(id) }

// Answer is what the node answers another one that is about to begin a generation of its store.
func (s *Stepped) Answer() peer.StoreAnswer {
	return peer.StoreAnswer{Node: s.config.Region + "/" + s.config.Node, Documents: s.rights.Documents()}
}

// Shown returns the latest time that the store has shown to the node.
func (s *Stepped) Shown() quantity.StoreTime { return s.node.Shown() }

// Confirms has the node confirm what another node of its region found of their store.
func (s *Stepped) Confirms(c store.Confirmation) bool { return s.node.Confirms(c) }

// Documents returns the documents that are open at this node, the oldest first.
func (s *Stepped) Documents() []*policy.Document { return s.tenure.Rules().View.Agenda.Documents() }

// Epoch returns the epoch of the document this node works under.
func (s *Stepped) Epoch() string { return s.tenure.Rules().Epoch }

// Version returns the version of the newest document that is open.
func (s *Stepped) Version() int64 { return s.tenure.Rules().Document.Version }

// Generation returns the generation of the store that this node works under.
func (s *Stepped) Generation() uint64 { return s.tenure.Generation() }

// Assign plans what Envoys are assigned, and carries out what that takes. It reports whether the store
// was asked for something.
func (s *Stepped) Assign() bool {
	work := s.node.Envoys().Step()
	s.node.Envoys().CarryOut(context.Background(), work)
	return len(work.Holds)+len(work.Charges) > 0
}

// Envoys returns what assigns parts of limits to Envoys.
func (s *Stepped) Envoys() *envoys.Assigner { return s.node.Envoys() }

// Waiting is a request that waits. Again must be called exactly once for it, when its wait is over
// or when its patience has run out.
type Waiting struct {
	Buckets  []string
	Patience time.Duration
	flow     *admit.Flow
}

// Said is what a node says to a request: a decision, or that the request waits, or an error.
type Said struct {
	Decision admit.Decision
	Waiting  *Waiting           // nil: it waits for nothing
	Buckets  []*exchange.Bucket // of the limits that apply to it now
	Asked    bool               // the store was asked since the node said that it waits
	Err      error
}

// Check decides a request as a node does, but does not block.
func (s *Stepped) Check(q admit.Request) Said {
	f, err := s.limiter.Begin(q, true)
	if err != nil {
		return Said{Err: err}
	}
	return s.goOn(f)
}

// Charge charges what a use cost that is over, as a node does whose caller has gone: it does not wait for a
// bucket to be restored. All limits that apply are charged always.
func (s *Stepped) Charge(q admit.Request) (said Said) {
	gone, leave := context.WithCancel(context.Background())
	leave()
	said.Buckets = s.Buckets(q)
	said.Decision, said.Err = s.limiter.Report(gone, q)
	return said
}

// CheckTogether decides several requests of one call as a node does: those that span shards each
// beside the others. It calls said with each answer.
func (s *Stepped) CheckTogether(all []admit.Request, said func(i int, one Said)) {
	flows := make([]*admit.Flow, len(all))
	errs := make([]error, len(all))
	for i, q := range all {
		if flows[i], errs[i] = s.limiter.Begin(q, true); errs[i] != nil {
			flows[i] = nil
		}
	}
	left := s.limiter.AskTogether(context.Background(), flows)
	for i, f := range flows {
		switch {
		case f == nil:
			said(i, Said{Err: errs[i]})
		case left[i]:
			s.runs.Go(func() { said(i, s.goOn(f)) })
		default:
			said(i, s.goOn(f))
		}
	}
}

// Settle tells the requests that wait for a bucket what the machine has settled.
func (s *Stepped) Settle(one exchange.Settled) { s.rights.Settle(one) }

// Over reports whether a request's wait is over: either the machine has settled all buckets that it
// waits for, or one of them such that asking the store again cannot help. helps reports whether
// asking the store again may help.
func (w *Waiting) Over() (helps, over bool) { return w.flow.Over() }

// Again goes on with a request that waited. helps is as Over returned it. timedOut says that the
// request's patience has run out. If the store is not asked again, the decision rests on its answer
// from before the wait.
func (s *Stepped) Again(w *Waiting, helps, timedOut bool) Said {
	w.flow.Waited(helps, timedOut)
	return s.goOn(w.flow)
}

// goOn goes on until a request is decided or waits.
func (s *Stepped) goOn(f *admit.Flow) (said Said) {
	for f.Next() == admit.Asks {
		said.Asked = true
		f.Ask(context.Background())
	}
	said.Buckets = f.Buckets()
	if f.Next() == admit.Waits {
		said.Waiting = &Waiting{Buckets: f.Awaited(), Patience: f.Patience(), flow: f}
		return said
	}
	said.Decision, said.Err = f.Decision()
	return said
}
