package journal

import (
	"context"
	"errors"
	"time"
)

// Group commit: one goroutine writes. While a commit runs, calls gather in the
// queue, and the next commit takes all of them, so that the cost of an fsync is
// shared by as many calls as arrive during one, without a timer.

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
	r := &request{apply: apply, weight: weight, done: make(chan error, 1)}
	select {
	case j.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-j.closing:
		return closed(j.file.path)
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
		return closed(j.file.path)
	}
}

// usable returns why nothing can be written any more, if so.
func (j *Journal) usable() error {
	select {
	case <-j.closing:
		return closed(j.file.path)
	default:
	}
	if err := j.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes cause the answer to every later call, unless one came before it,
// and returns the answer.
func (j *Journal) fail(cause error) error {
	err := failed(j.file.path, cause)
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

// commitBatch makes a batch durable as one commit, or fails the journal.
func (j *Journal) commitBatch(batch []*request) error {
	if err := j.failure.Load(); err != nil {
		return *err
	}
	start := time.Now()
	t, err := j.file.update(j.totals, j.durable.forget, j.commit, func(t *transaction) error {
		for _, r := range batch {
			if err := r.apply(t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return j.fail(errors.Join(errors.New("a commit failed"), err))
	}
	j.durable.add(t.known)
	if t.changed {
		j.totals = t.totals
		j.counts.committed(t.totals, len(batch), time.Since(start))
	}
	return nil
}
