package journal

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// Journal is a node's journal on a disk. All methods are safe for concurrent
// use.
type Journal struct {
	disk        disk.Disk
	name        string // the journal's name in errors
	incarnation uint64
	found       uint64 // the sequence number at opening

	queue   chan *request
	direct  *sync.Mutex   // nil: the writer commits; else each call commits, with the mutex locked
	closing chan struct{} // closed when Close is called
	stopped chan struct{} // closed when the writer has ended
	failure atomic.Pointer[error]

	totals  totals // of the last commit; only the committing goroutine uses them
	durable *durableRows
	counts  counts
	saved   saved
	round   round // of Prune

	closeOnce sync.Once
	closeErr  error
}

// start begins a journal on a disk whose contents were read.
func start(d disk.Disk, name string, c contents, direct bool) *Journal {
	j := &Journal{
		disk:        d,
		name:        name,
		incarnation: c.incarnation,
		found:       c.found,
		queue:       make(chan *request, queueCalls),
		closing:     make(chan struct{}),
		stopped:     make(chan struct{}),
		totals:      c.totals,
		durable:     newDurableRows(cacheBytes),
	}
	j.round.at = front
	j.counts.show(c.totals)
	j.saved.noted = c.noted
	if direct {
		j.direct = new(sync.Mutex)
		close(j.stopped)
		return j
	}
	go j.write()
	return j
}

// Record makes rows durable. When it returns nil, each row is on the disk at these values or
// higher. Rows of one bucket, peer and cell are merged, each number by maximum. Calls made at the
// same time share a commit. Rows that are durable already need no commit.
//
// A commit that raises a row also records how far the store's time had come (seen, as in
// SetStoreTime). So a node that starts again recognises a copy of its store that is older than
// these rows.
//
// Record waits while the queue is full. If ctx ends first it returns ctx's error, and the rows may
// or may not become durable. It takes at most MaxRecordRows rows; ErrInvalid means that none was
// written.
func (j *Journal) Record(ctx context.Context, rows []Row, seen ...quantity.StoreTime) error {
	if err := validateRows(rows); err != nil {
		return err
	}
	if err := j.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if j.durable.covers(rows) {
		j.counts.recorded(true)
		return nil
	}
	// The rows are copied because the caller may reuse the slice once its ctx has ended, while the
	// writer still uses it.
	rows = slices.Clone(rows)
	err := j.submit(ctx, len(rows), func(t *transaction) error {
		return t.along(seen, func() error { return t.record(rows) })
	})
	if err == nil {
		j.counts.recorded(false)
	}
	return err
}

// Checkpoint makes checkpoints durable. When it returns nil, the disk has this checkpoint or a
// newer one for each bucket and cell. The one with the higher Generation is newer; of two in one
// generation, that with the later At; of two at one time, the one with the larger Used. Until is
// the latest ever given. Calls share commits with one another and with Record, and record seen as
// Record does. Checkpoints that are not newer change nothing.
//
// Checkpoint waits while the queue is full. If ctx ends first it returns ctx's error, and the
// checkpoints may or may not become durable. It takes at most MaxCheckpoints; ErrInvalid means that
// none was written.
func (j *Journal) Checkpoint(ctx context.Context, checkpoints []Checkpoint,
	seen ...quantity.StoreTime) error {
	if err := validateCheckpoints(checkpoints); err != nil {
		return err
	}
	if err := j.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	checkpoints = slices.Clone(checkpoints) // as in Record
	return j.submit(ctx, len(checkpoints), func(t *transaction) error {
		return t.along(seen, func() error { return t.checkpoint(checkpoints) })
	})
}

func (j *Journal) isClosing() bool {
	select {
	case <-j.closing:
		return true
	default:
		return false
	}
}

// Close waits for the running commit and closes the disk. Calls still waiting
// for a later commit, and all calls from then on, fail with ErrClosed. It may
// be called more than once, and returns the same each time.
func (j *Journal) Close() error {
	j.closeOnce.Do(func() {
		close(j.closing)
		<-j.stopped
		if j.direct != nil {
			j.direct.Lock()
			defer j.direct.Unlock()
		}
		j.closeErr = j.disk.Close()
	})
	return j.closeErr
}
