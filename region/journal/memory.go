package journal

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
)

// memoryName stands in errors where a Journal has its path.
const memoryName = "in memory"

// Memory is a model of Journal, record by record, for simulators: the same
// methods with the same results, synchronous, without files or goroutines. What
// is on its disk and what is not is explicit:
//
//   - Append puts rows into a buffer, as if they waited for a commit.
//   - Sync moves the buffer to the disk, whole, as one commit.
//   - Crash loses the buffer, keeps the disk and opens the next incarnation.
//
// Record is Append and Sync in one; the other writing methods sync first, since
// the file's commits keep the order of calls. A simulator that wants a
// commit in flight at a crash to survive, though nobody was told, calls Sync
// and then Crash. Methods are safe for concurrent use.
type Memory struct {
	mu sync.Mutex

	// The disk.
	rows        map[rowID]Row
	checkpoints map[checkpointID]Checkpoint
	generation  uint64
	wholeSince  int64
	storeTime   storeTime
	peers       []string
	policy      policy

	incarnation uint64
	pending     []Row // appended, not synced
	next        error // the next commit fails with it
	failure     error // a commit failed
	shut        bool
	stats       Stats
}

// NewMemory returns the model of a journal just made, incarnation 1.
func NewMemory() *Memory {
	return &Memory{
		rows:        make(map[rowID]Row),
		checkpoints: make(map[checkpointID]Checkpoint),
		wholeSince:  math.MaxInt64,
		incarnation: 1,
		stats:       Stats{Sequence: 1},
	}
}

// Append buffers rows. They are not durable, and Rows does not show them, until
// Sync or another writing method returns nil.
func (m *Memory) Append(rows []Row) error {
	if err := validateRows(rows); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return err
	}
	m.pending = append(m.pending, rows...)
	return nil
}

// Sync makes what was appended durable.
func (m *Memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sync()
}

func (m *Memory) sync() error {
	if err := m.usable(); err != nil {
		return err
	}
	raised := make(map[rowID]Row)
	for _, r := range m.pending {
		id := r.id()
		was, known := raised[id]
		if !known {
			was, known = m.rows[id]
		}
		if known {
			r = was.raise(r)
		}
		if !known || r != was {
			raised[id] = r
		}
	}
	if len(raised) > 0 {
		if err := m.commit(func() { maps.Copy(m.rows, raised) }); err != nil {
			return err
		}
	}
	m.pending = nil
	return nil
}

// commit changes the disk, or fails the model if FailSync asked for it. That a
// failing commit may have written something nonetheless is left to Sync and
// Crash to play.
func (m *Memory) commit(change func()) error {
	if m.next != nil {
		m.failure = failed(memoryName, m.next)
		return m.failure
	}
	change()
	m.stats.Rows, m.stats.Checkpoints = uint64(len(m.rows)), uint64(len(m.checkpoints))
	m.stats.Sequence++
	m.stats.Commits++
	m.stats.Calls++
	return nil
}

func (m *Memory) usable() error {
	if m.shut {
		return closed(memoryName)
	}
	return m.failure
}

// FailSync makes the next commit that changes something fail with err, and with
// it every later call that needs the disk, until Crash.
func (m *Memory) FailSync(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = err
}

// Crash ends this incarnation, at whatever point, and opens the next with what
// was on the disk. It also reopens a model that failed or was closed.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending, m.next, m.failure, m.shut = nil, nil, nil, false
	m.incarnation++
	m.stats = Stats{Rows: m.stats.Rows, Checkpoints: m.stats.Checkpoints, Sequence: m.stats.Sequence + 1}
}

// Record is Journal.Record.
func (m *Memory) Record(ctx context.Context, rows []Row) error {
	if err := validateRows(rows); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.pending = append(m.pending, rows...)
	before := m.stats.Commits
	if err := m.sync(); err != nil {
		return err
	}
	m.stats.Recorded++
	if m.stats.Commits == before {
		m.stats.Covered++
	}
	return nil
}

// Rows is Journal.Rows, as a snapshot of what is durable now.
func (m *Memory) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		rows, err := m.snapshot()
		if err != nil {
			yield(Row{}, err)
			return
		}
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *Memory) snapshot() ([]Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return nil, err
	}
	return m.rowsWhere(func(Row) bool { return true }), nil
}

// rowsWhere returns the durable rows that match, in the journal's order.
func (m *Memory) rowsWhere(match func(Row) bool) []Row {
	var rows []Row
	for _, r := range m.rows {
		if match(r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return a.id().compare(b.id()) })
	return rows
}

// RowsOf is Journal.RowsOf.
func (m *Memory) RowsOf(bucket string, from, to int64) ([]Row, error) {
	if err := validateRange(bucket, from, to); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return nil, err
	}
	return m.rowsWhere(func(r Row) bool {
		return r.Bucket == bucket && from <= r.Cell && r.Cell <= to
	}), nil
}

// Close is Journal.Close. Crash opens the model again.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shut = true
	return nil
}

// Stats is Journal.Stats; there are no durations and nothing waits.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Failed = m.failure != nil
	return s
}
