package oracle

import (
	"fmt"
	"time"
)

// The token bucket holds at most B tokens, and B at first. It is refilled with L in W. Each
// admission takes its cost, and the level must never be below zero. What is missing from a full
// bucket behaves like a queue: B - level is zero at first, falls by L in W down to zero, and must
// never exceed B. So meter and pooled limiter are the queue's, and only cells and words differ.

// sliceOf returns the number of the second that contains a store time (µs). A second is the cell of
// a token bucket.
func sliceOf(l Limit, at int64) int64 {
	length := time.Second
	if l.Assigned {
		length = 10 * time.Second
	}
	return floorDiv(at, length.Microseconds())
}

func newTokenCeiling(l Limit) ceiling {
	return newTimeline(
		func(at int64) int64 { return sliceOf(l, at) },
		func() meter { return newQueueMeter(l) },
	)
}

func newTokenPool(l Limit) pool { return newQueuePool(l) }

// tokenExceeded describes a level below zero.
func tokenExceeded(l Limit, t tally, units int64) string {
	return fmt.Sprintf("the bucket of %d tokens fell below zero by %d at store time %d µs, after %d units admitted since it was last full",
		l.Burst, t.all-l.Burst, t.at, units)
}
