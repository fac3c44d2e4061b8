package bubble

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// On two processors the race detector of Go 1.26 crashes within the first 50 of these bubbles.
func TestTimersDueTogether(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for range 100 {
		Test(t, func(t *testing.T) {
			var sleepers sync.WaitGroup
			for range 16 {
				sleepers.Go(func() {
					for range 50 {
						<-time.NewTimer(0).C
						time.Sleep(time.Millisecond)
					}
				})
			}
			sleepers.Wait()
		})
	}
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("%d processors after the test, %d before", after, before)
	}
}
