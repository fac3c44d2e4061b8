package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// wakeParts is how many times within a deadline a busy node checks whether it is woken in time.
	wakeParts = 5
	// starvedPart says how late is too late: a node that is woken later than due by 1/starvedPart
	// of the deadline is starved of processor time.
	starvedPart = 10
	// starvedLasts is the number of deadlines for which a node counts as starved after it was woken
	// too late. Lack of processor time comes in bursts, and between them replies are still delayed.
	starvedLasts = 10
	// starvedDeadlines is the number of deadlines for which a starved node does not treat its store
	// as out of reach. Some seconds without a reply are not explained by lack of processor time.
	starvedDeadlines = store.MaxTimeouts
)

// wakes finds out whether this process gets enough processor time. While requests are sent to the
// store, a goroutine sleeps and notes how late it is woken. A starved process reads replies late,
// or takes them for missing. Times are nanoseconds after begun.
type wakes struct {
	begun  time.Time
	begins chan struct{} // wakes the watching goroutine when requests are sent again
	used   atomic.Bool   // requests were sent since watch last looked
	due    atomic.Int64  // when the sleeper is to be woken; 0: nobody sleeps
	late   atomic.Int64  // when the sleeper was last woken too late; 0: never
}

func newWakes(begun time.Time) *wakes { return &wakes{begun: begun, begins: make(chan struct{}, 1)} }

// uses notes that a request is sent to the store.
func (w *wakes) uses() {
	if w.used.Load() { // the usual case: loading is cheaper than swapping
		return
	}
	if already := w.used.Swap(true); already {
		return
	}
	repeat.Signal(w.begins)
}

// watch sleeps and wakes while requests are sent, until ctx ends. deadline is that of a store call.
func (w *wakes) watch(ctx context.Context, deadline time.Duration) {
	every := time.NewTimer(time.Hour)
	defer every.Stop()
	for {
		w.due.Store(0)
		select {
		case <-ctx.Done():
			return
		case <-w.begins:
		}
		for used := w.used.Swap(false); used; used = w.used.Swap(false) {
			due := time.Since(w.begun) + deadline/wakeParts
			w.due.Store(int64(due))
			every.Reset(deadline / wakeParts)
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if now := time.Since(w.begun); now-due > deadline/starvedPart {
				w.late.Store(int64(now))
			}
		}
	}
}

// starved reports whether this process lacks processor time, or did within the last starvedLasts
// deadlines.
func (w *wakes) starved(now time.Time, deadline time.Duration) bool {
	at, due, late := now.Sub(w.begun), time.Duration(w.due.Load()), time.Duration(w.late.Load())
	return due != 0 && at-due > deadline/starvedPart || late != 0 && at-late < starvedLasts*deadline
}
