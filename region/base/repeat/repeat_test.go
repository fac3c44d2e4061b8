package repeat

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// TestWhile: work is done at each tick as long as there is some, from one period after a signal on.
func TestWhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		begun, signal, over := time.Now(), make(chan struct{}, 1), make(chan struct{})
		var done []time.Duration
		var left atomic.Int64
		left.Store(2)
		go func() {
			defer close(over)
			While(ctx, signal, time.Second, func() bool { return left.Load() > 0 }, func() {
				done = append(done, time.Since(begun))
				left.Add(-1)
			})
		}()
		time.Sleep(5500 * time.Millisecond) // there is work, and nobody said so
		Signal(signal)
		time.Sleep(10 * time.Second)
		Signal(signal) // there is none
		time.Sleep(10 * time.Second)
		left.Store(1)
		Signal(signal)
		time.Sleep(10 * time.Second)
		end()
		<-over
		if want := []time.Duration{6500 * time.Millisecond, 7500 * time.Millisecond, 26500 * time.Millisecond}; !slices.Equal(done, want) {
			t.Errorf("done at %v, want %v", done, want)
		}
	})
}

// TestWhileEnds, also while there is work.
func TestWhileEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer end()
		signal, done := make(chan struct{}, 1), 0
		Signal(signal)
		While(ctx, signal, time.Second, func() bool { return true }, func() { done++ })
		if done != 3 {
			t.Errorf("done %d times, want 3", done)
		}
	})
}
