package journal

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// Journal is a node's journal in a file. All methods are safe for concurrent
// use.
type Journal struct {
	file        *file
	commit      func(*bolt.Tx) error
	incarnation uint64

	queue   chan *request
	closing chan struct{} // closed when Close is called
	stopped chan struct{} // closed when the writer has ended
	failure atomic.Pointer[error]

	totals  totals // of the last commit; the writer's alone
	durable *durableRows
	counts  counts
	saved   saved

	closeOnce sync.Once
	closeErr  error
}

// start begins the writer on a file whose contents were read.
func start(f *file, c contents, opts Options) *Journal {
	j := &Journal{
		file:        f,
		commit:      opts.commit,
		incarnation: c.incarnation,
		queue:       make(chan *request, queueCalls),
		closing:     make(chan struct{}),
		stopped:     make(chan struct{}),
		totals:      c.totals,
		durable:     newDurableRows(cacheBytes),
	}
	j.counts.stats.Rows, j.counts.stats.Sequence = c.totals.rows, c.totals.sequence
	j.saved.generation, j.saved.peers, j.saved.policy = c.generation, c.peers, c.policy
	go j.write()
	return j
}

// Record makes rows durable: when it returns nil, each of them is on disk at
// these values or higher. Rows of one bucket, peer and cell are merged, each
// number by maximum. Calls made at the same time share a commit; rows already
// durable cost none.
//
// Record waits while the queue is full. If ctx ends first it returns ctx's
// error, and the rows may or may not become durable. At most MaxRecordRows rows
// are taken; ErrInvalid means that none was written.
func (j *Journal) Record(ctx context.Context, rows []Row) error {
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
	// Copied, because the caller may reuse the slice once its ctx has ended
	// while the writer still has it in hand.
	rows = slices.Clone(rows)
	err := j.submit(ctx, len(rows), func(t *transaction) error { return t.record(rows) })
	if err == nil {
		j.counts.recorded(false)
	}
	return err
}

// Prune removes rows with Until < before (microseconds of store time since
// 1970), at most PruneLimit of them, oldest first, and returns how many. Call
// it again while it returns PruneLimit.
func (j *Journal) Prune(before int64) (int, error) {
	pruned := 0
	err := j.submit(context.Background(), PruneLimit, func(t *transaction) (err error) {
		pruned, err = t.prune(before, PruneLimit)
		return err
	})
	if err != nil {
		return 0, err
	}
	return pruned, nil
}

// rowsPage is how many rows Rows reads in one transaction.
const rowsPage = 512

// Rows returns all durable rows, ordered by cell, bucket and peer. It is no
// snapshot: a row recorded or pruned meanwhile may appear or not, every other
// row appears once. An error comes last, with a zero Row. The loop's body may
// call any method of the journal.
func (j *Journal) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var after []byte
		for {
			page, last, err := j.readPage(after)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if len(page) < rowsPage {
				return
			}
			after = last
		}
	}
}

// readPage returns the rows that follow the key after, and the last one's key.
// Each page is a transaction of its own, because bolt's writer must wait for
// readers now and then, and the reader may be waiting for the writer.
func (j *Journal) readPage(after []byte) (page []Row, last []byte, err error) {
	if err := j.usable(); err != nil {
		return nil, nil, err
	}
	err = j.file.view(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(bucketRows).Cursor()
		key, sealed := cursor.First()
		if after != nil {
			key, sealed = cursor.Seek(after)
			if slices.Equal(key, after) {
				key, sealed = cursor.Next()
			}
		}
		for ; key != nil && len(page) < rowsPage; key, sealed = cursor.Next() {
			r, err := decodeRow(key, sealed)
			if err != nil {
				return err
			}
			page, last = append(page, r), append(last[:0], key...)
		}
		return nil
	})
	switch {
	case err == nil:
		return page, last, nil
	case j.isClosing():
		return nil, nil, closed(j.file.path)
	default:
		return nil, nil, j.fail(err)
	}
}

func (j *Journal) isClosing() bool {
	select {
	case <-j.closing:
		return true
	default:
		return false
	}
}

// Close waits for the running commit and releases the file. Calls still waiting
// for a later commit, and all calls from then on, fail with ErrClosed. It may
// be called more than once, and returns the same each time.
func (j *Journal) Close() error {
	j.closeOnce.Do(func() {
		close(j.closing)
		<-j.stopped
		removeOwner(j.file.path)
		j.closeErr = j.file.close()
	})
	return j.closeErr
}
