// Package repeat does something again and again: at each tick, or whenever somebody signals.
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

// Signal puts a value into a channel that has room for one, unless it holds one: whoever receives
// from it does its work once, however many signals there were. It does not wait.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
