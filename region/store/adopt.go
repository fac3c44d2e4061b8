package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotad/quotad/algorithms"
)

// ErrOlderPolicy says that the region already works under a newer policy document.
var ErrOlderPolicy = errors.New("the region's store has a newer policy document in force")

// Adopt puts a newer policy epoch in force in the region's store, shard by shard. From then on a
// call under another epoch is answered with StatusUnknown, from whichever node. After an error some
// shards may have the new epoch already; calling Adopt again brings it to the others.
func (s *session) Adopt(ctx context.Context, epoch string) error {
	return s.adopt(ctx, s.Generation(), epoch)
}

func (s *session) adopt(ctx context.Context, generation uint64, epoch string) error {
	return s.each(func(_ int,
		shard Shard) error {
		return s.adoptIn(ctx, shard, generation, epoch)
	})
}

func (s *session) adoptIn(ctx context.Context, shard Shard, generation uint64, epoch string) error {
	switch a, err := token[algorithms.Adopt, algorithms.Adopted](ctx, s, s.timeout, shard,
		algorithms.Adopt{Generation: generation, Epoch: epoch}); {
	case err != nil:
		return fmt.Errorf("put policy %s in force in the store: %w", epoch, err)
	case a.OK:
		return nil
	case a.Epoch == "":
		return fmt.Errorf("put policy %s in force in the store: %w", epoch, ErrUnknownStore)
	default:
		return fmt.Errorf("put policy %s in force: %w, %s: give this node that document, or one of a higher version", epoch, ErrOlderPolicy, a.Epoch)
	}
}
