package journal

import (
	"context"
	"errors"
	"time"
)

// Group commit: one goroutine writes. While a commit runs, calls gather in the queue, and the next
// commit takes all of them. So all calls that arrive during one fsync share the next, without a
// timer. A direct journal has neither goroutine nor queue: each call commits for itself.

const (
	queueCalls = 256    // calls waiting for the next commit; more wait to enter
	batchSize  = 16_384 // a commit takes no more calls once it has this many records
)

// request is one call waiting to become durable.
type request struct {
	apply  func(*transaction) error
	weight int        // records it touches at most
	done   chan error // holds one
}

// submit hands apply to the writer and waits until it is durable. It returns
// ctx's error if ctx ends first; apply may then still be committed.
func (j *Journal) submit(ctx context.Context, weight int, apply func(*transaction) error) error {
	if err := j.usable(); err != nil {
		return err
	}
	if j.direct != nil {
		return j.commitAlone(apply)
	}
	r := &request{apply: apply, weight: weight, done: make(chan error, 1)}
	select {
	case j.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-j.closing:
		return closed(j.name)
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-j.stopped:
	}
	select {
	case err := <-r.done: // it was in the last commit
		return err
	default:
		return closed(j.name)
	}
}

// usable returns why nothing can be written any more; nil: writes are possible.
func (j *Journal) usable() error {
	if j.isClosing() {
		return closed(j.name)
	}
	if err := j.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes cause the answer to every later call, unless the journal failed before, and returns
// that answer.
func (j *Journal) fail(cause error) error {
	err := failed(j.name, cause)
	j.failure.CompareAndSwap(nil, &err)
	return *j.failure.Load()
}

// write commits batches until the journal closes.
func (j *Journal) write() {
	defer close(j.stopped)
	for {
		select {
		case <-j.closing:
			return
		case first := <-j.queue:
			batch := j.gather(first)
			err := j.commitBatch(batch)
			for _, r := range batch {
				r.done <- err
			}
		}
	}
}

// gather takes what is waiting, up to the size of a commit.
func (j *Journal) gather(first *request) []*request {
	batch, size := []*request{first}, first.weight
	for size < batchSize {
		select {
		case r := <-j.queue:
			batch, size = append(batch, r), size+r.weight
		default:
			return batch
		}
	}
	return batch
}

// commitAlone makes one call durable, in its own goroutine.
func (j *Journal) commitAlone(apply func(*transaction) error) error {
	j.direct.Lock()
	defer j.direct.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	return j.commit([]*request{{apply: apply}}, func() time.Duration { return 0 })
}

// commitBatch makes a batch durable as one commit, or fails the journal.
func (j *Journal) commitBatch(batch []*request) error {
	if err := j.failure.Load(); err != nil {
		return *err
	}
	start := time.Now()
	return j.commit(batch, func() time.Duration { return time.Since(start) })
}

// commit makes a batch durable. took returns how long that took, and is called afterwards.
func (j *Journal) commit(batch []*request, took func() time.Duration) error {
	t := newTransaction(j.disk, j.totals, j.saved.now().storeTime, j.durable.forget)
	err := applyAll(t, batch)
	if err == nil {
		err = t.commit()
	}
	if err != nil {
		return j.fail(errors.Join(errors.New("a commit failed"), err))
	}
	j.durable.add(t.recorded)
	if len(t.changes) > 0 {
		j.totals = t.totals
		j.saved.showStoreTime(t.storeTime)
		j.counts.committed(t.totals, len(batch), took())
	}
	return nil
}

func applyAll(t *transaction, batch []*request) error {
	for _, r := range batch {
		if err := r.apply(t); err != nil {
			return err
		}
	}
	return nil
}
