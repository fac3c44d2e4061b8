package admit

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// wakeParts is how many times in a deadline a node that is at work looks whether it gets processors.
	wakeParts = 5
	// starvedPart is the part of the deadline by which it is woken too late if it is starved of them.
	starvedPart = 10
	// starvedLasts is for how many deadlines a node counts as starved after it was woken too late: want of processors comes
	// in fits, and between them replies are still behind.
	starvedLasts = 10
	// starvedDeadlines is for how many deadlines a starved node does not count its store as out of reach: some seconds
	// without a reply are no want of processors any more.
	starvedDeadlines = 40
)

// wakes finds out whether this process gets processors: while requests are sent to the store, somebody sleeps and sees when he
// is woken. A process that is starved hears replies late, or takes them for missing. Times are since since.
type wakes struct {
	begins chan struct{} // requests are sent again
	used   atomic.Bool   // they were since the last time
	due    atomic.Int64  // when he is to be woken; 0: nobody sleeps
	late   atomic.Int64  // when he was last woken too late; 0: never
}

// uses notes that a request is sent to the store.
func (w *wakes) uses() {
	if w.used.Load() { // mostly: it costs less than to set it
		return
	}
	if already := w.used.Swap(true); already {
		return
	}
	select {
	case w.begins <- struct{}{}:
	default:
	}
}

// watch sleeps and wakes while requests are sent, until ctx ends.
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
			due := time.Since(since) + deadline/wakeParts
			w.due.Store(int64(due))
			every.Reset(deadline / wakeParts)
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if now := time.Since(since); now-due > deadline/starvedPart {
				w.late.Store(int64(now))
			}
		}
	}
}

// starved says whether this process wants for processors, or did within the last starvedLasts deadlines.
func (w *wakes) starved(now time.Time, deadline time.Duration) bool {
	at, due, late := now.Sub(since), time.Duration(w.due.Load()), time.Duration(w.late.Load())
	return due != 0 && at-due > deadline/starvedPart || late != 0 && at-late < starvedLasts*deadline
}
