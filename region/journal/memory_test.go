package journal

import (
	"errors"
	"slices"
	"testing"
)

func TestMemoryCrashKeepsOnlyWhatWasSynced(t *testing.T) {
	raised := kept
	raised.Lent++
	for _, c := range []struct {
		name  string
		steps func(m *Memory) error
		want  []Row
	}{
		{"appended", func(m *Memory) error { return m.Append([]Row{raised, numbered(1)}) }, []Row{kept}},
		{"appended and synced", func(m *Memory) error { return errors.Join(m.Append([]Row{raised}), m.Sync()) }, []Row{raised}},
		{"a later write syncs", func(m *Memory) error { return errors.Join(m.Append([]Row{raised}), m.SetGeneration(4)) }, []Row{raised}},
		{"a later checkpoint syncs", func(m *Memory) error {
			return errors.Join(m.Append([]Row{raised}), m.Checkpoint(t.Context(), nil))
		}, []Row{raised}},
		{"a later record syncs", func(m *Memory) error {
			return errors.Join(m.Append([]Row{raised}), m.Record(t.Context(), []Row{kept}))
		}, []Row{raised}},
		{"a prune syncs", func(m *Memory) error {
			_, err := m.Prune(0)
			return errors.Join(m.Append([]Row{raised}), err, m.Append(nil))
		}, []Row{kept}},
		{"a failed sync writes nothing", func(m *Memory) error {
			m.FailSync(errDisk)
			if err := m.Record(t.Context(), []Row{raised}); !errors.Is(err, errDisk) {
				return errors.New("the commit did not fail")
			}
			return nil
		}, []Row{kept}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMemory()
			if err := errors.Join(m.Record(t.Context(), []Row{kept}), c.steps(m)); err != nil {
				t.Fatal(err)
			}
			m.Crash()
			if got := allRows(t, m.Rows()); !slices.Equal(got, c.want) {
				t.Fatalf("after the crash %v, want %v", got, c.want)
			}
		})
	}
}

func TestMemoryHidesWhatIsNotDurable(t *testing.T) {
	m := NewMemory()
	if err := m.Append([]Row{kept}); err != nil {
		t.Fatal(err)
	}
	if got := allRows(t, m.Rows()); len(got) != 0 || m.Stats().Rows != 0 {
		t.Fatalf("appended rows show before they are durable: %v", got)
	}
	if err := m.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := allRows(t, m.Rows()); !slices.Equal(got, []Row{kept}) {
		t.Fatalf("rows are %v", got)
	}
}

func TestDurableRowsStayWithinBounds(t *testing.T) {
	const limit = 10_000
	d := newDurableRows(limit)
	for i := range 1000 {
		r := numbered(i)
		d.add(map[rowID]Row{r.id(): r})
		if !d.covers([]Row{r}) {
			t.Fatalf("row %d is forgotten at once", i)
		}
		bytes := 0
		for id := range d.young {
			bytes += weight(id)
		}
		if bytes != d.bytes || bytes > limit || len(d.old) > limit/cacheEntryBytes {
			t.Fatalf("after %d rows: %d bytes counted as %d, %d rows older", i, bytes, d.bytes, len(d.old))
		}
	}
	if d.covers([]Row{numbered(0)}) {
		t.Fatal("the first of 1000 rows is still held")
	}
	last := numbered(999)
	d.forget(last.id())
	if d.covers([]Row{last}) {
		t.Fatal("a row is covered after it was forgotten")
	}
}

func TestMemoryCopySharesNothing(t *testing.T) {
	m := NewMemory()
	if err := errors.Join(m.Record(t.Context(), []Row{kept}), m.SetGeneration(3)); err != nil {
		t.Fatal(err)
	}
	before := m.Incarnation()
	c := m.Copy()
	if c.Incarnation() != before+1 || m.Incarnation() != before || c.Generation() != 3 {
		t.Fatalf("the copy is incarnation %d and generation %d, the original %d", c.Incarnation(), c.Generation(), m.Incarnation())
	}
	if err := m.Record(t.Context(), []Row{numbered(1)}); err != nil {
		t.Fatal(err)
	}
	if got := allRows(t, c.Rows()); !slices.Equal(got, []Row{kept}) {
		t.Fatalf("the copy has %v", got)
	}
}
