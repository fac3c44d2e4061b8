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

// checkPolicy fails if the document is older than the one under which this node worked before.
func (t *Tenure) checkPolicy(d *policy.Document) error {
	if version, _, known := t.config.Journal.Policy(); known && version > d.Version {
		return fmt.Errorf("policy %s is older than version %d, which this node worked under before: give it that document, "+
			"or one of a higher version", d.Epoch(), version)
	}
	return nil
}

// adoptPause is the time between the tries of Adopt while the store is out of reach.
const adoptPause = 250 * time.Millisecond

var errNotNewer = errors.New("raise its version")

// Adopt puts another limits document in force. It refuses a document of a lower version, and one of
// the same version with other contents. While the store is out of reach it tries again until ctx
// ends.
func (t *Tenure) Adopt(ctx context.Context, d *policy.Document) error {
	for {
		err := t.AdoptOnce(ctx, d)
		if err == nil || errors.Is(err, errNotNewer) || errors.Is(err, store.ErrOlderPolicy) ||
			errors.Is(err, rules.ErrNoRegion) {
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

// AdoptOnce tries once to put another limits document in force.
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
		return fmt.Errorf("policy %s is not newer than %s, which is in force: %w", r.Epoch,
			old.Epoch, errNotNewer)
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

// putInForce puts a document in force in the store and then in this node.
func (t *Tenure) putInForce(ctx context.Context, r *rules.Rules) error {
	err := t.config.Store.Adopt(ctx, r.Epoch)
	// The store may be closed to our document because a newer one is in force there.
	if errors.Is(err, store.ErrUnknownStore) {
		return t.openUnder(ctx, r, false)
	}
	if err != nil {
		return err
	}
	t.rules.Store(r)
	t.config.Changed(Change{Rules: r, Generation: t.Generation(), Now: t.config.Store.Latest()})
	return nil
}
