package region

import (
	"context"
	"errors"
)

// Drain makes the end of the node cost nothing: it charges in the store what the node admitted without it, writes down all
// use of long windows, and tells the other nodes that this one goes. Call it when no more requests come, and Close
// afterwards; until then peers are answered. It does what it can until ctx ends, and says what could not be done.
func (n *Node) Drain(ctx context.Context) error {
	return errors.Join(n.closeBooks(ctx), n.Leave(ctx))
}

// closeBooks charges in the store what was admitted without it, and writes down use, one last time.
func (n *Node) closeBooks(ctx context.Context) error {
	n.books.Lock()
	defer n.books.Unlock()
	err := n.limiter.SettleAll(ctx)
	n.rights.Checkpoint(ctx, true)
	return err
}
