package tenure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// ErrClosed says that the node has been closed.
var ErrClosed = errors.New("the node is closed")

// adoptPause is the time between the tries of Adopt while the store is out of reach.
const adoptPause = 250 * time.Millisecond

// Adopt opens another limits document in this region, and so, by and by, in the others. It refuses
// a document that is older than the newest open one, that has the version of an open one and other
// contents, or that leaves out a region. While the store is out of reach it tries again until ctx
// ends.
func (t *Tenure) Adopt(ctx context.Context, d *policy.Document) error {
	for {
		err := t.AdoptOnce(ctx, d)
		if err == nil || barrier.Refused(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-t.config.Closed:
			return ErrClosed
		case <-time.After(adoptPause):
		}
	}
}

// AdoptOnce tries once to open another limits document.
func (t *Tenure) AdoptOnce(ctx context.Context, d *policy.Document) error {
	if newest := t.Rules().Document; d.Version < newest.Version {
		return fmt.Errorf("document %s is not taken, %s is open: %w", d.Epoch(), newest.Epoch(),
			barrier.ErrOlder)
	}
	return t.learn(ctx, d, fromHere)
}

// Where documents come from.
const (
	fromHere    = "" // this node's file, or who applied it here
	fromStore   = "the region's Redis"
	fromRegions = "other regions"
)

// learn opens a document. from says where it comes from.
func (t *Tenure) learn(ctx context.Context, d *policy.Document, from string) error {
	turn := t.begin()
	defer turn.end()
	turn.origins[d.Epoch()] = from
	defer delete(turn.origins, d.Epoch())
	agenda, err := t.agenda().Learn(d)
	if err != nil || agenda.String() == t.agenda().String() {
		return err
	}
	if err := turn.putInForce(ctx, t.binding(agenda)); err != nil {
		return err
	}
	t.config.Log.Info("limits document open", "epoch", d.Epoch().String(), "open", t.Rules().Epoch)
	return nil
}

// agenda returns the documents that are open.
func (t *Tenure) agenda() barrier.Agenda { return t.Rules().View.Agenda }

// binding returns an agenda without the documents that bind no limit any more. If more than
// barrier.MaxOpen are left, the older ones are folded.
func (t *Tenure) binding(a barrier.Agenda) barrier.Agenda {
	return t.known.view(a, t.config.Store.Surely()).Folded(barrier.MaxOpen)
}

// merges bounds how often putInForce and openUnder take in documents that other nodes of the region
// opened meanwhile.
const merges = 4

// putInForce opens documents in the store and then in this node.
func (t *turn) putInForce(ctx context.Context, a barrier.Agenda) error {
	for range merges {
		if err := t.keepDocuments(ctx, t.config.Store.Generation(), a); err != nil && !errors.Is(err, store.ErrUnknownStore) {
			return err
		}
		last, err := t.adoptInStore(ctx, a)
		var other *store.OtherDocuments
		switch {
		case err == nil:
			t.save(a)
			t.known.acknowledge(a, last)
			t.known.again()
			t.apply(rules.New(t.known.view(a, t.config.Store.Surely()),
				t.config.Store.Shards()))
			return nil
		// The store may have been lost, or be closed to the documents that this node knew.
		case errors.Is(err, store.ErrUnknownStore):
			return t.openUnder(ctx, a, false)
		case !errors.As(err, &other):
			return err
		}
		if a, err = t.merged(ctx, a, other); err != nil {
			return err
		}
	}
	return errMerging
}

// adoptInStore opens documents in the store. It returns the store time from which on nothing is
// decided there without them. That time is not before the documents came here: the acknowledgement
// also speaks for regions that they fence, and such a region may have gone on until then while this
// store answered nobody.
func (t *Tenure) adoptInStore(ctx context.Context, a barrier.Agenda) (quantity.StoreTime, error) {
	last, err := t.config.Store.Adopt(ctx, a.String(), a.Folded()...)
	if err == nil {
		err = t.config.Store.Beat(ctx, a.String())
	}
	return max(last, t.config.Store.Latest()), err
}

var errMerging = errors.New("other nodes of the region keep opening limits documents")

// work makes the node decide by other rules. It passes on to Config.Adopted the documents that this
// node did not open by itself.
func (t *turn) work(r *rules.Rules) {
	before := t.agenda()
	t.rules.Store(r)
	for _, d := range r.View.Agenda.Documents() {
		from, told := t.origins[d.Epoch()]
		if !told {
			from = fromStore
		}
		if from != fromHere && d.Kept == nil && !before.Has(d.Epoch()) {
			t.config.Adopted(before.Newest(), d, from)
		}
	}
}

// apply makes the node decide by other rules, and tells its other parts.
func (t *turn) apply(r *rules.Rules) {
	t.work(r)
	t.known.wait(r.View)
	t.config.Changed(Change{Rules: r, Generation: t.Generation(), Now: t.config.Store.Latest()})
}

// merged returns an agenda with the documents that another node of the region opened in the store.
func (t *turn) merged(ctx context.Context, a barrier.Agenda,
	other *store.OtherDocuments) (barrier.Agenda, error) {
	if t.guess {
		return t.joined(ctx, other)
	}
	return t.found(ctx, a, barrier.Merged(a, other.Found), other)
}

// joined returns the documents that stand in the store, and behind them the document of the node's
// file. It is for a node that knows only its file.
func (t *turn) joined(ctx context.Context, other *store.OtherDocuments) (barrier.Agenda, error) {
	filed := t.config.Policy
	a, err := t.found(ctx, barrier.Of(filed), barrier.Names(other.Found), other)
	if err != nil {
		return a, err
	}
	t.guess = false
	return t.behind(a, filed), nil
}

// found returns the agenda of the documents with these names. It reads those that the node does not
// know from the store.
func (t *Tenure) found(ctx context.Context, a barrier.Agenda, names []string,
	other *store.OtherDocuments) (barrier.Agenda, error) {
	var all []*policy.Document
	for _, name := range names {
		d, known := a.Find(name)
		if !known {
			var err error
			if d, err = t.kept(ctx, name, other); err != nil {
				return a, err
			}
		}
		all = append(all, d)
	}
	return barrier.Union(all...)
}

// kept returns a document that the store keeps.
func (t *Tenure) kept(ctx context.Context, name string,
	other *store.OtherDocuments) (*policy.Document, error) {
	source, err := t.config.Store.Document(ctx, name)
	if err != nil {
		return nil, err
	}
	if source == "" {
		return nil, other
	}
	d, err := t.parse(name, []byte(source))
	if err != nil {
		return nil, fmt.Errorf("document %s, which the store keeps: %w", name, err)
	}
	if d.Epoch().String() != name {
		return nil, fmt.Errorf("what the store keeps as document %s is %s: %w", name, d.Epoch(),
			other)
	}
	return d, nil
}

// keepDocuments writes the documents that the store does not have yet into the store, where every
// node of the region finds them. generation is the one that the store stands under.
func (t *Tenure) keepDocuments(ctx context.Context, generation uint64, a barrier.Agenda) error {
	for _, d := range a.Documents() {
		name := d.Epoch().String()
		kept, err := t.config.Store.Document(ctx, name)
		if err == nil && kept == "" {
			err = t.config.Store.KeepDocument(ctx, generation, name, string(d.Source()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
