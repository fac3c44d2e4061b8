package journal

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Checkpoint is Journal.Checkpoint.
func (m *Memory) Checkpoint(ctx context.Context, checkpoints []Checkpoint) error {
	if err := validateCheckpoints(checkpoints); err != nil {
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
	if err := m.sync(); err != nil {
		return err
	}
	renewed := make(map[checkpointID]Checkpoint)
	for _, c := range checkpoints {
		id := c.id()
		was, known := renewed[id]
		if !known {
			was, known = m.checkpoints[id]
		}
		if known {
			c = was.merge(c)
		}
		if !known || c != was {
			renewed[id] = c
		}
	}
	if len(renewed) == 0 {
		return nil
	}
	return m.commit(func() { maps.Copy(m.checkpoints, renewed) })
}

// Checkpoints is Journal.Checkpoints.
func (m *Memory) Checkpoints(bucket string) ([]Checkpoint, error) {
	if err := validateBucket(bucket); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return nil, err
	}
	return m.checkpointsWhere(func(c Checkpoint) bool { return c.Bucket == bucket }), nil
}

// checkpointsWhere returns the checkpoints that match, in the file's order.
func (m *Memory) checkpointsWhere(match func(Checkpoint) bool) []Checkpoint {
	var checkpoints []Checkpoint
	for _, c := range m.checkpoints {
		if match(c) {
			checkpoints = append(checkpoints, c)
		}
	}
	slices.SortFunc(checkpoints, func(a, b Checkpoint) int { return a.id().compare(b.id()) })
	return checkpoints
}

// Prune is Journal.Prune.
func (m *Memory) Prune(before int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.sync(); err != nil {
		return 0, err
	}
	old := m.olderThan(before)
	if len(old) == 0 {
		return 0, nil
	}
	err := m.commit(func() {
		for _, r := range old {
			r.remove()
		}
	})
	if err != nil {
		return 0, err
	}
	return len(old), nil
}

// aged is a record to prune.
type aged struct {
	until  int64
	remove func()
}

// olderThan returns what one call of Prune removes: of records of one age rows
// first, each kind in its order, as in the file.
func (m *Memory) olderThan(before int64) []aged {
	var old []aged
	for _, r := range m.rowsWhere(func(r Row) bool { return r.Until < before }) {
		old = append(old, aged{r.Until, func() { delete(m.rows, r.id()) }})
	}
	for _, c := range m.checkpointsWhere(func(c Checkpoint) bool { return c.Until < before }) {
		old = append(old, aged{c.Until, func() { delete(m.checkpoints, c.id()) }})
	}
	slices.SortStableFunc(old, func(a, b aged) int { return cmp.Compare(a.until, b.until) })
	return old[:min(len(old), PruneLimit)]
}
