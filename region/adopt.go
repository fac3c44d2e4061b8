package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/store"
)

// checkPolicy refuses to go back behind the document that this node worked under before.
func (n *Node) checkPolicy(d *policy.Document) error {
	if version, _, known := n.journal.Policy(); known && version > d.Version {
		return fmt.Errorf("policy %s is older than version %d, which this node worked under before: give it that document, or one of a higher version", d.Epoch(), version)
	}
	return nil
}

// Adopt puts another policy document in force. One of a lower version, or of the same with other contents, is refused.
// While the store is out of reach it tries again until ctx ends.
func (n *Node) Adopt(ctx context.Context, d *policy.Document) error {
	r, err := newRules(d, n.config.Region)
	if err != nil {
		return err
	}
	r.shards = n.store.Shards()
	for {
		err := n.adopt(ctx, r)
		if err == nil || errors.Is(err, errNotNewer) || errors.Is(err, store.ErrOlderPolicy) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-n.closed:
			return ErrClosed
		case <-time.After(adoptPause):
		}
	}
}

// adoptPause is how long Adopt waits for a store that is out of reach.
const adoptPause = 250 * time.Millisecond

var errNotNewer = errors.New("raise its version")

func (n *Node) adopt(ctx context.Context, r *rules) error {
	n.standing.Lock()
	defer n.standing.Unlock()
	old := n.rules.Load()
	switch {
	case r.epoch == old.epoch:
		return nil
	case r.document.Version <= old.document.Version:
		return fmt.Errorf("policy %s is not newer than %s, which is in force: %w", r.epoch, old.epoch, errNotNewer)
	}
	switch err := n.store.Adopt(ctx, r.epoch); {
	case errors.Is(err, store.ErrNotOpen): // and it may have a newer document than ours in force, so that we cannot open it
		if err := n.standUnder(ctx, r, false); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		n.rules.Store(r)
		n.engine.deliver(exchange.TenureChanged{Generation: n.store.Generation(), Epoch: r.epoch, Peers: r.peers,
			Clock: n.now().UnixMicro()})
	}
	n.log.Info("policy in force", "epoch", r.epoch)
	if err := n.journal.SavePolicy(r.document.Version, r.document.Source()); err != nil {
		n.log.Error("the policy in force is not remembered for the next start", "err", err)
	}
	return nil
}
