// Package repeat does something again and again.
package repeat

import (
	"context"
	"time"
)

// Every calls do at each tick of a period, the first time after one period, until ctx ends. A tick
// that comes while do is still at work is dropped, as by a time.Ticker.
func Every(ctx context.Context, period time.Duration, do func(now time.Time)) {
	every := time.NewTicker(period)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			do(now)
		}
	}
}
