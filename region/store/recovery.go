package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Recall reads what this region has heard of a peer's rows, and fences; of the calls' guards only the epoch need be set.
func (s *Store) Recall(ctx context.Context, calls []algorithms.Recall) []Result[algorithms.Recalled] {
	items := make([]item[algorithms.Recalled], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.RecallScript, c)
	}
	return run(ctx, s, items)
}

// Restore gives lost buckets back what is known of them; of the calls' guards only the epoch need be set.
func (s *Store) Restore(ctx context.Context, calls []algorithms.Restore) []Result[algorithms.Restored] {
	items := make([]item[algorithms.Restored], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.RestoreScript, c)
	}
	return run(ctx, s, items)
}

// Book charges what nodes admitted without the store; of the calls' guards only the epoch need be set.
func (s *Store) Book(ctx context.Context, calls []algorithms.Book) []Result[algorithms.Booked] {
	items := make([]item[algorithms.Booked], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.BookScript, c)
	}
	return run(ctx, s, items)
}

const notePatience = time.Second

// Note has the store remember a text of a node until its data is lost, and returns the one before, empty if there was
// none. It fails with ErrNotOpen where the store is not open under this node's generation.
func (s *Store) Note(ctx context.Context, node, text string) (before string, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(s.timeout, notePatience)) // no request waits for it
	defer cancel()
	c := algorithms.Note{Generation: s.Generation(), Node: node, Text: text}
	reply, err := s.eval(ctx, s.shards[0], algorithms.NoteScript, c.Args())
	if err != nil {
		return "", fmt.Errorf("have the store remember node %s: %w", node, err)
	}
	noted, err := c.Parse(reply)
	if err == nil && !noted.OK {
		err = fmt.Errorf("have the store remember node %s: %w", node, ErrNotOpen)
	}
	return noted.Before, err
}
