package tenure

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// timeAhead is a reserve of time, in microseconds: the journal says that the store's time may have
// come so far beyond what the store has shown. If the store loses everything, a restarted node
// makes its time begin there, so the store stays closed for up to this much longer.
const timeAhead = 3 * allocator.Second

// storeTimes keeps in the journal how far the store's time may have come. The store's clock may
// have been ahead, and be right again when the store comes back empty. Windows that were used
// already must then not open again. Safe for concurrent use.
type storeTimes struct {
	journal *journal.Journal
	log     *slog.Logger

	reserved atomic.Int64 // no later time is used before the journal has it
	mu       sync.Mutex   // held while reserved is raised
	failed   bool         // the last write failed, and that is logged
}

// reserve ensures that the journal has a time of the store, in microseconds. Usually Beat has
// reserved it already. It waits for the journal only if the time has come further in a second than
// a clock does.
func (t *storeTimes) reserve(now quantity.StoreTime) {
	if now > quantity.StoreTime(t.reserved.Load()) {
		t.extend(now)
	}
}

// extend writes to the journal that the store's time may come to now + timeAhead, unless half of
// that reserve is left. With it the journal notes the times that the store's shards have shown, if
// they are given.
func (t *storeTimes) extend(now quantity.StoreTime, seen ...quantity.StoreTime) {
	t.mu.Lock()
	defer t.mu.Unlock()
	latest := quantity.StoreTime(t.reserved.Load())
	if now > latest-timeAhead/2 {
		latest = now + timeAhead
	} else if len(seen) == 0 {
		return
	}
	err := t.journal.SetStoreTime(latest, seen...)
	if err != nil && !t.failed {
		t.log.Error("the journal cannot keep the store's time: should that be lost together with this node while its clock is ahead, windows may be used twice", "err", err)
	}
	t.failed = err != nil
	// This is done after a failure, too, so that requests do not wait for a broken journal again
	// and again.
	t.reserved.Store(int64(latest))
}

// beatEvery is how often the node asks the store for its time.
const beatEvery = time.Second

// KeepTime asks the store for its time every beatEvery, tells it that this node uses it, and looks
// for the operator's word, until ctx ends.
func (t *Tenure) KeepTime(ctx context.Context) {
	repeat.Every(ctx, beatEvery, func(time.Time) {
		t.Beat(ctx)
		t.TellUse(ctx)
		t.LearnWaived(ctx)
	})
}

// tellNamed passes on which nodes the store has answered.
func (t *Tenure) tellNamed() {
	if all := t.config.Store.Named(); t.config.Named != nil && len(all) > 0 {
		t.config.Named(all)
	}
}

// Beat asks the store for its time. So a node without requests also knows how far the time has
// come, and whether the store is still the one that it opened.
func (t *Tenure) Beat(ctx context.Context) {
	s := t.config.Store
	if s.Generation() == 0 {
		return
	}
	if err := s.Beat(ctx, t.Rules().Epoch); errors.Is(err, store.ErrUnknownStore) {
		t.Reopen()
	}
	if now := s.Latest(); now > 0 {
		t.times.extend(now, s.Seen()...)
	}
	t.tellNamed()
	t.Review(ctx)
}
