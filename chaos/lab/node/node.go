// Package node has a node of a region that is stepped by hand: nothing runs in it by itself, and nothing is said to other
// nodes. Whoever drives it says what happens next, and when. What it does with its machine, store and journal is done by the
// code of package region, so a simulator has whole nodes, and can end one between any two of its acts.
package node

import (
	"cmp"
	"context"

	"slices"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/admit"
	"github.com/quotad/quotad/region/rights"
	"github.com/quotad/quotad/region/store"
	"github.com/quotad/quotad/region/tenure"
)

// longest is how long a request may take by the wall clock, by which no store of a simulation is late.
const longest = time.Hour

// Stepped is a node that is stepped by hand. Not safe for concurrent use.
type Stepped struct {
	config  region.Config
	node    *region.Node
	tenure  *tenure.Tenure
	rights  *rights.Engine
	limiter *admit.Limiter
	events  []exchange.Event
	silent  map[store.Shard]time.Time // servers that do not answer, and since when
}

// New returns a node whose store is open. Of c what concerns other nodes is not used: listeners, addresses, dialer and keys.
// The machine is told by the first of Events on what terms it may use the store.
func New(c region.Config) (*Stepped, error) {
	s := &Stepped{config: c, silent: map[store.Shard]time.Time{}}
	var err error
	s.node, err = region.New(c, region.Stepping{Taken: func(e exchange.Event) { s.events = append(s.events, e) }})
	if err != nil {
		return nil, err
	}
	s.tenure, s.rights, s.limiter = s.node.Wings()
	return s, s.tenure.Open(context.Background())
}

// Events returns what the machine is to hear because of what was done since it was last asked, in order.
func (s *Stepped) Events() []exchange.Event {
	all := s.events
	s.events = nil
	return all
}

// Step has the machine hear an event at node time now, microseconds of a clock that never goes back.
func (s *Stepped) Step(now int64, e exchange.Event) exchange.Effects { return s.rights.Hear(now, e) }

// Report is what was decided since the last report, for the machine to hear; empty: nothing was.
func (s *Stepped) Report() exchange.Report {
	all := s.rights.Observations()
	slices.SortFunc(all, func(a, b exchange.Observed) int { return cmp.Compare(a.Bucket.ID, b.Bucket.ID) })
	return all
}

// Asked is a peer's message as the machine hears it, under a number that its Answer will have.
func (s *Stepped) Asked(id uint64, m exchange.Message) exchange.Asked { return s.rights.Asked(id, m) }

// Questioned is the question of a node that recovers as the machine hears it, under a number that its Testify will have.
func (s *Stepped) Questioned(id uint64, q exchange.Question) exchange.Questioned {
	return s.rights.Questioned(id, q)
}

// Lend carries the debits of one message out.
func (s *Stepped) Lend(all []exchange.Lend) { s.rights.Lend(context.Background(), all) }

// Record makes rows durable.
func (s *Stepped) Record(r exchange.Record) { s.rights.Record(context.Background(), r) }

// Credit carries credits out.
func (s *Stepped) Credit(all []exchange.Credit) { s.rights.Credit(context.Background(), all) }

// Consult looks up what is asked for.
func (s *Stepped) Consult(c exchange.Consult) { s.rights.Consult(context.Background(), c) }

// Restore has the store restore buckets.
func (s *Stepped) Restore(all []exchange.Restore) { s.rights.Restore(context.Background(), all) }

// PublishHint returns a hint as gossip carries it.
func (s *Stepped) PublishHint(h exchange.Hint) ([]byte, error) { return s.rights.Hints().Publish(h) }

// MergeHints takes in what gossip carried.
func (s *Stepped) MergeHints(b []byte) error {
	_, err := s.rights.Hints().Merge(b)
	return err
}

// Reopen opens the store again if that is due; after an error it is due again.
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

// TryAgain tries a store that did not answer.
func (s *Stepped) TryAgain() { s.limiter.TryAgain(context.Background(), s.silent) }

// SettleLocal charges in the store what was admitted without it.
func (s *Stepped) SettleLocal() { s.limiter.SettleLocal(context.Background()) }

// CloseBooks does what a node does last that is asked to end.
func (s *Stepped) CloseBooks() error {
	err := s.limiter.SettleAll(context.Background())
	s.rights.Checkpoint(context.Background(), true)
	return err
}

// Checkpoint has the store show its time, and writes down what use has moved.
func (s *Stepped) Checkpoint() {
	s.tenure.Beat(context.Background())
	s.rights.Checkpoint(context.Background(), false)
}

// Forget drops what weighs no more, from memory and journal.
func (s *Stepped) Forget() { s.node.Forget(s.config.Now()) }

// Adopt puts another limits document in force, trying once.
func (s *Stepped) Adopt(d *policy.Document) error {
	return s.tenure.AdoptOnce(context.Background(), d)
}

// Refund takes back what a decision charged; see [admit.Limiter.Refund].
func (s *Stepped) Refund(receipt string) (admit.Refunded, error) {
	return s.limiter.Refund(context.Background(), receipt)
}

// Buckets are those of the limits that apply to a request, as the exchange knows them.
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

// ExistsUntil returns the store time until which this node knows a bucket to be in the store: only until then does it notice
// that it was deleted.
func (s *Stepped) ExistsUntil(id string) int64 { return s.rights.ExistsUntil(id) }

// Epoch returns that of the document this node works under.
func (s *Stepped) Epoch() string { return s.tenure.Rules().Epoch }

// Generation returns the generation of the store that this node works under.
func (s *Stepped) Generation() uint64 { return s.tenure.Generation() }

// Waiting is a request that waits. Again must be called, once: when its wait is over, or its patience.
type Waiting struct {
	Buckets  []string
	Patience time.Duration
	flow     *admit.Flow
}

// Check decides a request as a node does, but does not wait: it returns either a decision or what to wait for.
func (s *Stepped) Check(q admit.Request) (admit.Decision, *Waiting, error) {
	f, err := s.limiter.Begin(q, true)
	if err != nil {
		return admit.Decision{}, nil, err
	}
	return s.goOn(f)
}

// Said is what came of one request of several: a decision, what to wait for, or an error.
type Said struct {
	Decision admit.Decision
	Waiting  *Waiting
	Err      error
}

// CheckTogether decides several requests of one call as a node does, but does not wait.
func (s *Stepped) CheckTogether(all []admit.Request) []Said {
	said := make([]Said, len(all))
	flows, place := make([]*admit.Flow, 0, len(all)), make([]int, 0, len(all))
	for i, q := range all {
		f, err := s.limiter.Begin(q, true)
		if err != nil {
			said[i].Err = err
			continue
		}
		f.Extend(time.Now().Add(longest))
		flows, place = append(flows, f), append(place, i)
	}
	s.limiter.AskTogether(context.Background(), flows)
	for n, f := range flows {
		one := &said[place[n]]
		one.Decision, one.Waiting, one.Err = s.goOn(f)
	}
	return said
}

// Settle tells the requests that wait for a bucket what the machine said of it.
func (s *Stepped) Settle(one exchange.Settled) { s.rights.Settle(one) }

// Over says whether a request has waited long enough: the machine has said of all that it waits for whether asking the store
// once more may help, or of one that it does not.
func (w *Waiting) Over() (helps, over bool) { return w.flow.Over() }

// Again goes on with a request that waited. helps: the machine said that asking the store once more may help; timedOut: the
// request's patience is over. asked: the store was asked once more, so that what is decided is not of before the wait.
func (s *Stepped) Again(w *Waiting, helps, timedOut bool) (d admit.Decision, more *Waiting, asked bool, err error) {
	w.flow.Waited(helps, timedOut)
	asked = w.flow.Next() == admit.Asks
	d, more, err = s.goOn(w.flow)
	return d, more, asked, err
}

// goOn goes on until a request is decided or waits.
func (s *Stepped) goOn(f *admit.Flow) (admit.Decision, *Waiting, error) {
	for f.Next() == admit.Asks {
		f.Extend(time.Now().Add(longest))
		f.Ask(context.Background())
	}
	if f.Next() == admit.Waits {
		return admit.Decision{}, &Waiting{Buckets: f.Awaited(), Patience: f.Patience(), flow: f}, nil
	}
	d, err := f.Decision()
	return d, nil, err
}
