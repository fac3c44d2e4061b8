package journal

import (
	"sync"
	"time"
)

// Stats are a journal's numbers at one moment. Counts begin at Open.
type Stats struct {
	Rows        uint64 // durable rows
	Checkpoints uint64 // durable checkpoints
	Sequence    uint64 // number of the last commit since the file was made

	Recorded uint64 // calls of Record that returned nil
	Covered  uint64 // of these, calls answered from memory, without a commit
	Commits  uint64
	Calls    uint64 // calls that the commits carried; Calls / Commits of them share an fsync

	SlowestCommit time.Duration // from taking the batch until it is on disk
	Waiting       int           // calls in the queue
	Failed        bool          // a commit failed: nothing is taken until it is opened anew
}

// counts gathers Stats.
type counts struct {
	mu    sync.Mutex
	stats Stats
	watch func(took time.Duration) // nil: nobody wants to know
}

// Watch sets the function that is told how long each further commit took. The function must not
// wait.
func (j *Journal) Watch(watch func(took time.Duration)) {
	j.counts.mu.Lock()
	defer j.counts.mu.Unlock()
	j.counts.watch = watch
}

func (c *counts) recorded(covered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Recorded++
	if covered {
		c.stats.Covered++
	}
}

// show copies the totals of a commit. The caller holds mu, or is the only user.
func (c *counts) show(t totals) {
	c.stats.Rows, c.stats.Checkpoints, c.stats.Sequence = t.rows.count, t.checkpoints.count,
		t.sequence
}

func (c *counts) committed(t totals, calls int, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.show(t)
	c.stats.Commits++
	c.stats.Calls += uint64(calls)
	c.stats.SlowestCommit = max(c.stats.SlowestCommit, took)
	if c.watch != nil {
		c.watch(took)
	}
}

// Stats returns the journal's numbers.
func (j *Journal) Stats() Stats {
	j.counts.mu.Lock()
	s := j.counts.stats
	j.counts.mu.Unlock()
	s.Waiting = len(j.queue)
	s.Failed = j.failure.Load() != nil
	return s
}
