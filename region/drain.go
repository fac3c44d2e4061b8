package region

import (
	"context"
	"errors"
	"fmt"
)

// Drain makes the end of the node cost nothing: it charges in the store what the node admitted without it, writes down all
// use of long windows, and tells the other nodes that this one goes. Call it when no more requests come, and Close
// afterwards; until then peers are answered. It does what it can until ctx ends, and says what could not be done.
func (n *Node) Drain(ctx context.Context) error {
	return errors.Join(n.closeBooks(ctx), n.Leave(ctx))
}

// closeBooks books and checkpoints one last time.
func (n *Node) closeBooks(ctx context.Context) error {
	n.books.Lock()
	defer n.books.Unlock()
	left := n.fallback.status().Unbooked
	for before := left + 1; left > 0 && left < before; { // a turn books so many at most
		n.book(ctx)
		before, left = left, n.fallback.status().Unbooked
	}
	n.checkpoint(ctx, true)
	if left > 0 {
		return fmt.Errorf("units that node %s admitted without the store are not charged there: %d; what others admit in their windows comes on top",
			n.config.Node, left)
	}
	return nil
}
