package rights

import (
	"context"
	"slices"
)

const (
	// maxMoved bounds the scripts that move rights in one pipeline. At some 50 us each, a decision
	// behind the pipeline waits a millisecond or two, well within the store's deadline.
	maxMoved = 32
	// movesUnderWay bounds how many such pipelines run at a time. Further ones wait in order.
	// Decisions do not wait for them, and they do not wait for decisions that are queued.
	movesUnderWay = 2
)

// inPieces carries out calls that move rights, at most maxMoved at a time, each piece when a place
// in turns is free. It hands each result to took; i is the index of its call. If ctx ends before a
// piece's turn, took gets no results for it: it may get fewer results than there are calls.
func inPieces[C, R any](ctx context.Context, turns chan struct{}, calls []C,
	do func(context.Context, []C) []R, took func(i int, result R)) {
	from := 0
	for piece := range slices.Chunk(calls, maxMoved) {
		select {
		case turns <- struct{}{}:
			results := do(ctx, piece)
			<-turns
			for i, result := range results {
				took(from+i, result)
			}
		case <-ctx.Done():
		}
		from += len(piece)
	}
}
