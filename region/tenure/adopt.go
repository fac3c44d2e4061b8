package tenure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

// ErrClosed says that the node has been closed.
var ErrClosed = errors.New("the node is closed")

// checkPolicy refuses to go back behind the document that this node worked under before.
func (t *Tenure) checkPolicy(d *policy.Document) error {
	if version, _, known := t.config.Journal.Policy(); known && version > d.Version {
		return fmt.Errorf("policy %s is older than version %d, which this node worked under before: give it that document, "+
			"or one of a higher version", d.Epoch(), version)
	}
	return nil
}

// adoptPause is how long Adopt waits for a store that is out of reach.
const adoptPause = 250 * time.Millisecond

var errNotNewer = errors.New("raise its version")

// Adopt puts another limits document in force. One of a lower version, or of the same with other contents, is refused. While
// the store is out of reach it tries again until ctx ends.
func (t *Tenure) Adopt(ctx context.Context, d *policy.Document) error {
	for {
		err := t.AdoptOnce(ctx, d)
		if err == nil || errors.Is(err, errNotNewer) || errors.Is(err, store.ErrOlderPolicy) || errors.Is(err, rules.ErrNoRegion) {
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

// AdoptOnce is Adopt, but tries once.
func (t *Tenure) AdoptOnce(ctx context.Context, d *policy.Document) error {
	r, err := rules.New(d, t.config.Region, t.config.Store.Shards())
	if err != nil {
		return err
	}
	t.begin()
	defer t.end()
	old := t.Rules()
	switch {
	case r.Epoch == old.Epoch:
		return nil
	case r.Document.Version <= old.Document.Version:
		return fmt.Errorf("policy %s is not newer than %s, which is in force: %w", r.Epoch, old.Epoch, errNotNewer)
	}
	if err := t.putInForce(ctx, r); err != nil {
		return err
	}
	t.config.Log.Info("policy in force", "epoch", r.Epoch)
	if err := t.config.Journal.SavePolicy(r.Document.Version, r.Document.Source()); err != nil {
		t.config.Log.Error("the policy in force is not remembered for the next start", "err", err)
	}
	return nil
}

// putInForce has the store take a document, and the node with it.
func (t *Tenure) putInForce(ctx context.Context, r *rules.Rules) error {
	err := t.config.Store.Adopt(ctx, r.Epoch)
	if errors.Is(err, store.ErrNotOpen) { // it may have a newer document than ours in force, so that ours cannot open it
		return t.openUnder(ctx, r, false)
	}
	if err != nil {
		return err
	}
	t.rules.Store(r)
	t.config.Changed(Change{Rules: r, Generation: t.Generation(), Now: t.config.Store.Latest()})
	return nil
}
