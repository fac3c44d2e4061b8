package store

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/algorithms"
)

// Beat has every shard show its time, so that a node that is asked nothing knows it too. It fails with ErrNotOpen where the
// store is not open under this node's generation and that document's epoch.
func (s *session) Beat(ctx context.Context, epoch string) error {
	return s.each(func(_ int, shard Shard) error {
		b, err := s.tokens.beatToken(ctx, shard, algorithms.Beat{Fence: s.guard(TokenKey(shard), algorithms.Fence{Epoch: epoch})})
		switch {
		case err != nil:
			return err
		case b.Status == algorithms.StatusUnknown:
			return ErrNotOpen
		case b.Status == algorithms.StatusOK:
			s.saw(shard, b.Now)
		}
		return nil
	})
}

// Note has the store remember a text of a node until its data is lost, and returns the one before, empty if there was
// none. It fails with ErrNotOpen where the store is not open under this node's generation.
func (s *session) Note(ctx context.Context, node, text string) (before string, err error) {
	noted, err := s.tokens.noteToken(ctx, s.shards[0], algorithms.Note{Generation: s.Generation(), Node: node, Text: text})
	if err == nil && !noted.OK {
		err = ErrNotOpen
	}
	if err != nil {
		return "", fmt.Errorf("have the store remember node %s: %w", node, err)
	}
	return noted.Before, nil
}
