package journal

import (
	"slices"
	"testing"
)

func TestDurableRowsStayWithinBounds(t *testing.T) {
	const limit = 10_000
	d := newDurableRows(limit)
	for i := range 1000 {
		r := numbered(i)
		d.add(slices.Values([]Row{r}))
		if !d.covers([]Row{r}) {
			t.Fatalf("row %d is forgotten at once", i)
		}
		bytes := 0
		for id := range d.young {
			bytes += weight(id)
		}
		if bytes != d.bytes || bytes > limit || len(d.old) > limit/cacheEntryBytes {
			t.Fatalf("after %d rows: %d bytes counted as %d, %d rows older", i, bytes, d.bytes,
				len(d.old))
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
