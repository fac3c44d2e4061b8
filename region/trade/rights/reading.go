package rights

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// ReadEvery is how often a node whose journal is not whole reads a page of its store, of about
	// readKeys keys: some 1,000 a second.
	ReadEvery = 100 * time.Millisecond
	readKeys  = 100
	// readAgain is the pause of a node that may not list the store's keys, or that found buckets
	// which it cannot read. Each further pause is twice as long, up to readSeldom.
	readAgain  = time.Minute
	readSeldom = time.Hour
)

// reading is how far a node has read what its store has of long windows. A node reads it if its own
// journal does not have it: the journal is new, or an old copy, in a region that served before.
// What the store has counted and lent includes all that the node's earlier life did. So once it is
// read, the journal is whole since the store last lost data. It also includes all that nodes did
// which are gone.
type reading struct {
	generation uint64 // in which the walk began; 0: none is under way
	began      quantity.StoreTime
	lostAt     quantity.StoreTime
	shard      int
	at         uint64 // see store.Walk
	foreign    int    // buckets of limits that no open document has, or of which the store does not know all
	rests      time.Time
	pause      time.Duration // before the store is read in vain again
	read       atomic.Int64  // keys read in this life
}

// ReadOn reads the next page of the store, if this node's journal is not whole since the store last
// lost data, or if no journal has what a node did that is gone. Make one call at a time.
func (e *Engine) ReadOn(ctx context.Context) {
	r, now := &e.reading, e.config.Now()
	generation, lostAt := e.config.Store.Lost()
	if generation == 0 || now.Before(r.rests) || r.generation != generation &&
		e.config.Journal.WholeSince() <= lostAt && !e.gone.toRead(e.config.Node, e.config.Store.Surely(),
		func(node string) bool { return e.config.Alive(e.config.Region+"/"+node, 0) }) {
		return
	}
	if r.generation != generation {
		r.generation, r.lostAt, r.began, r.shard, r.at, r.foreign = generation, lostAt, e.config.Store.Surely(), 0, 0, 0
		e.config.Log.Info("this node reads what the store has of long windows: its journal, or a node that is gone, had it")
	}
	if err := e.readPage(ctx); err != nil {
		e.config.Log.Debug("the store is not read", "err", err)
		var refused *store.Error
		if errors.As(err, &refused) && refused.Kind == "NOPERM" {
			r.rest(now)
		}
		return
	}
	if r.shard < len(e.config.Store.Shards()) {
		return
	}
	r.rest(now)
	if err := e.vouchAgain(ctx, generation); err != nil {
		e.config.Log.Debug("the store was read in vain", "err", err)
		return
	}
	r.pause = 0
}

// rest ends a walk. The next one begins after a pause.
func (r *reading) rest(now time.Time) {
	r.pause = min(max(2*r.pause, readAgain), readSeldom)
	r.generation, r.rests = 0, now.Add(r.pause)
}

// readPage reads a page of the store into memory and journal. If it fails, the page is read again.
func (e *Engine) readPage(ctx context.Context) error {
	r := &e.reading
	page, err := e.config.Store.Walk(ctx, e.config.Store.Shards()[r.shard], r.at, readKeys)
	if err != nil {
		return err
	}
	rules, foreign := e.config.Tenure.Rules(), 0
	var buckets []*exchange.Bucket
	var calls []algorithms.Inspect
	for _, id := range page.Buckets {
		switch b := rules.Find(id); {
		case b == nil:
			foreign++
		case b.Recovered:
			buckets = append(buckets, b)
			calls = append(calls, algorithms.Inspect{Fence: algorithms.Fence{Generation: r.generation, Epoch: b.Epoch},
				Target: rules.Target(b, 0)})
		}
	}
	answered := 0
	var rows []journal.Row
	inPieces(ctx, e.moves, calls, e.config.Store.Inspects, func(i int, res store.Result[algorithms.Inspected]) {
		var lost *store.LostBucket
		switch found := res.Value; {
		case errors.As(res.Err, &lost): // it expired since the walk came by, or was lost
			answered++
			foreign += oneIf(lost.LostAt > r.lostAt)
		case res.Err == nil:
			answered++
			foreign += oneIf(found.Shut > found.Now || found.Doubt > 0) // the store does not know all of it
			rows = append(rows, e.keep(buckets[i], found)...)
		}
	})
	if len(rows) > 0 {
		err = e.config.Journal.Record(ctx, rows, e.config.Store.Seen()...)
	}
	if err != nil || answered < len(calls) {
		return fmt.Errorf("%d of %d buckets read: %w", answered, len(calls), err)
	}
	r.read.Add(int64(len(page.Buckets)))
	r.foreign += foreign
	if r.at = page.Next; r.at == 0 {
		r.shard++
	}
	return nil
}

// keep takes in what the store counts as used of a bucket of a long window. It returns what the
// store has lent of it.
func (e *Engine) keep(b *exchange.Bucket, found algorithms.Inspected) (rows []journal.Row) {
	for _, row := range found.Traded() {
		if gave, ok := b.Gave(e.config.Region, e.reading.generation, row); ok {
			rows = append(rows, journal.Row(gave))
		}
	}
	if found.ExistsUntil > 0 {
		e.seen.note(b, found.State, found.Now)
	}
	return rows
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// vouchAgain records in the journal that it is whole since the store last lost data, and what it
// has of nodes that are gone. It does so only if the whole store was read and has lost nothing
// meanwhile.
func (e *Engine) vouchAgain(ctx context.Context, generation uint64) error {
	r := &e.reading
	if r.foreign > 0 {
		return fmt.Errorf("%d buckets are of limits that no open document has, or not known whole", r.foreign)
	}
	if err := e.config.Store.Beat(ctx, e.config.Tenure.Rules().Epoch); err != nil {
		return err
	}
	if e.config.Store.Generation() != generation {
		return errors.New("another generation began")
	}
	if err := e.writeUses(ctx, true); err != nil {
		return err
	}
	e.config.Log.Info("this node has read the store", "keys", r.read.Load())
	e.gone.read(e.config.Node, r.lostAt, r.began)
	since := e.config.Journal.WholeSince()
	if since > r.lostAt {
		e.gone.readAll(e.config.Node, r.began)
	}
	if err := e.noteNames(); err != nil {
		return err
	}
	return e.config.Journal.SetWholeSince(min(r.lostAt, since))
}
