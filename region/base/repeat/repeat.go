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

// While calls do at each tick of a period as long as there is more to do, the first time one period
// after a signal; see Signal. Whoever makes more to do must signal it. While there is nothing to do
// it costs nothing. It ends with ctx.
func While(ctx context.Context, signal <-chan struct{}, period time.Duration, more func() bool, do func()) {
	every := time.NewTicker(period)
	every.Stop()
	for working := false; ; {
		select {
		case <-ctx.Done():
			every.Stop()
			return
		case <-signal:
			if !working && more() {
				working = true
				every.Reset(period)
			}
		case <-every.C:
			do()
			if working = more(); !working {
				every.Stop()
			}
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
