package oracle

import (
	"fmt"
	"time"
)

// The token bucket holds B tokens at most and at first, and is refilled with L
// in W; each admission takes its cost, and the level must never be below zero.
// What is missing from it is a queue: B - level is nothing at first, falls by L
// in W down to nothing, and must never be above B. So the queue's meter is this
// one's, too; the pooled limiter is the same, and cells and words differ.

// sliceOf is the number of the second that a store time (µs) lies in: the cell
// of a token bucket.
func sliceOf(_ Limit, at int64) int64 { return floorDiv(at, time.Second.Microseconds()) }

func newTokenCeiling(l Limit) ceiling {
	return newTimeline(
		func(at int64) int64 { return sliceOf(l, at) },
		func() meter { return newQueueMeter(l) },
	)
}

func newTokenPool(l Limit) pool { return newQueuePool(l) }

// tokenExceeded words a level below zero.
func tokenExceeded(l Limit, t tally, units int64) string {
	return fmt.Sprintf("the bucket of %d tokens fell below zero by %d at store time %d µs, after %d units admitted since it was last full",
		l.Burst, t.all-l.Burst, t.at, units)
}
