package region

import (
	"context"
	"errors"
)

// Drain prepares the end of the node, so that nothing is lost by it. It gives prefetched units back
// to the store, charges there what the node admitted without it, writes all use of long windows to
// the journal, copies it to other nodes, and tells them that this one ends. Call it when no more requests come,
// and Close afterwards. Until Close the node answers its peers. Drain does what it can until ctx
// ends, and the error says what could not be done.
func (n *Node) Drain(ctx context.Context) error {
	err := n.closeBooks(ctx)
	n.rights.CopyLast(ctx)
	return errors.Join(err, n.Leave(ctx))
}

// closeBooks charges in the store what was admitted without it, and writes checkpoints of use, for
// the last time.
func (n *Node) closeBooks(ctx context.Context) error {
	n.books.Lock()
	defer n.books.Unlock()
	n.limiter.Chunks().ReturnAll(ctx)
	err := n.limiter.Local().BookAll(ctx)
	n.rights.Checkpoint(ctx, true)
	return err
}
