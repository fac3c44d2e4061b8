package store

import (
	"context"

	"github.com/quotad/quotad/algorithms"
)

// Recall reads what this region has heard of a peer's rows, and fences; of the calls' guards only the epoch need be set.
func (s *Store) Recall(ctx context.Context, calls []algorithms.Recall) []Result[algorithms.Recalled] {
	items := make([]item[algorithms.Recalled], len(calls))
	for i, c := range calls {
		c.Fence = s.guard(c.Key, c.Fence)
		items[i] = prepare(algorithms.RecallScript, c)
	}
	return run(ctx, s, items)
}

// Restore gives lost buckets back what is known of them; of the calls' guards only the epoch need be set.
func (s *Store) Restore(ctx context.Context, calls []algorithms.Restore) []Result[algorithms.Restored] {
	items := make([]item[algorithms.Restored], len(calls))
	for i, c := range calls {
		c.Fence = s.guard(c.Key, c.Fence)
		items[i] = prepare(algorithms.RestoreScript, c)
	}
	return run(ctx, s, items)
}

// Book charges what nodes admitted without the store; of the calls' guards only the epoch need be set.
func (s *Store) Book(ctx context.Context, calls []algorithms.Book) []Result[algorithms.Booked] {
	items := make([]item[algorithms.Booked], len(calls))
	for i, c := range calls {
		c.Fence = s.guard(c.Key, c.Fence)
		items[i] = prepare(algorithms.BookScript, c)
	}
	return run(ctx, s, items)
}
