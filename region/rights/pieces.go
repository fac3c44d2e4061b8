package rights

import (
	"context"
	"slices"
)

const (
	// maxMoved bounds the scripts that move rights in one pipeline. At some 50 us each it is a
	// millisecond or two that a decision behind it waits, and well within the store's deadline.
	maxMoved = 32
	// movesUnderWay bounds such pipelines under way at a time. Others wait in order; a decision
	// does not wait for them, nor do they wait for decisions that queue.
	movesUnderWay = 2
)

// inPieces carries out scripts that move rights piece by piece, each when it is its turn, and hands
// over what came of it. What ctx ended before is handed over as nothing done: results are fewer
// than the piece then.
func inPieces[C, R any](ctx context.Context, turns chan struct{}, calls []C,
	do func(context.Context, []C) []R, took func(from int, results []R)) {
	from := 0
	for piece := range slices.Chunk(calls, maxMoved) {
		var results []R
		select {
		case turns <- struct{}{}:
			results = do(ctx, piece)
			<-turns
		case <-ctx.Done():
		}
		took(from, results)
		from += len(piece)
	}
}
