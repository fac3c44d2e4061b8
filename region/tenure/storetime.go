package tenure

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/region/journal"
	"github.com/quotad/quotad/region/repeat"
	"github.com/quotad/quotad/region/store"
)

// timeAhead is how far ahead of the store's time the journal says it may come, in microseconds: a node that starts anew
// has a store that lost everything begin no earlier. So much longer that store is closed then, at most.
const timeAhead = 3 * allocator.Second

// storeTimes keeps in the journal how far the store's time may have come: a clock that was ahead may be right again when its
// store comes back empty, and windows that were used by then must not come again. Safe for concurrent use.
type storeTimes struct {
	journal *journal.Journal
	log     *slog.Logger

	reserved atomic.Int64 // no later time is given out before the journal has it
	mu       sync.Mutex   // held while that is raised
	failed   bool         // and said so
}

// reserve sees to it that the journal knows of a time of the store. It waits for the journal where it does not, which is so
// only if the time has come further in a second than a clock does.
func (t *storeTimes) reserve(now int64) {
	if now > t.reserved.Load() {
		t.extend(0, now)
	}
}

// extend has the journal allow for times well after now; every shard of the store has shown a time at or after seen.
func (t *storeTimes) extend(seen, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now <= t.reserved.Load()-timeAhead/2 {
		return
	}
	err := t.journal.SetStoreTime(seen, now+timeAhead)
	if err != nil && !t.failed {
		t.log.Error("the journal cannot keep the store's time: should that be lost together with this node while its clock is ahead, windows may be used twice", "err", err)
	}
	t.failed = err != nil
	t.reserved.Store(now + timeAhead) // also where it failed: no request waits for a broken journal again and again
}

// beatEvery is how often the store is had to show its time.
const beatEvery = time.Second

// KeepTime has the store show its time again and again, until ctx ends.
func (t *Tenure) KeepTime(ctx context.Context) {
	repeat.Every(ctx, beatEvery, func(time.Time) { t.Beat(ctx) })
}

// Beat has the store show its time, so that also a node that is asked nothing knows how far it has come, and whether it is
// still the store that this node opened.
func (t *Tenure) Beat(ctx context.Context) {
	s := t.config.Store
	if s.Generation() == 0 {
		return
	}
	if err := s.Beat(ctx, t.Rules().Epoch); errors.Is(err, store.ErrNotOpen) {
		t.Reopen()
	}
	if now := s.Latest(); now > 0 {
		t.times.extend(s.Surely(), now)
	}
}
