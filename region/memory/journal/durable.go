package journal

import (
	"iter"
	"sync"
)

// cacheBytes is the memory that one generation of durableRows may hold. cacheEntryBytes is what an
// entry takes beside the bytes of its names.
const (
	cacheBytes      = 8 << 20
	cacheEntryBytes = 160
)

// durableRows remembers rows known to be on disk, within bounds, so that a row announced again
// needs no fsync. Forgetting a row is always safe: the file is asked instead. It keeps two
// generations. Rows written or found move to the young one, and when that is full the old one is
// dropped. Safe for concurrent use.
type durableRows struct {
	mu    sync.Mutex
	limit int // bytes of one generation
	young map[rowID]Row
	old   map[rowID]Row
	bytes int // of young
}

func newDurableRows(limit int) *durableRows {
	return &durableRows{limit: limit, young: make(map[rowID]Row)}
}

// covers reports whether every row is on disk at these values or higher.
func (d *durableRows) covers(rows []Row) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range rows {
		has, ok := d.find(r.id())
		if !ok || has.raise(r) != has {
			return false
		}
	}
	return true
}

// add remembers rows that are on disk.
func (d *durableRows) add(rows iter.Seq[Row]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for r := range rows {
		d.keep(r.id(), r)
	}
}

// forget is called for a row that is about to be removed from the file.
func (d *durableRows) forget(id rowID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.young[id]; ok {
		d.bytes -= weight(id)
		delete(d.young, id)
	}
	delete(d.old, id)
}

func (d *durableRows) find(id rowID) (Row, bool) {
	if r, ok := d.young[id]; ok {
		return r, true
	}
	r, ok := d.old[id]
	if ok {
		d.keep(id, r)
	}
	return r, ok
}

func (d *durableRows) keep(id rowID, r Row) {
	if _, ok := d.young[id]; !ok {
		if d.bytes+weight(id) > d.limit {
			d.old, d.young, d.bytes = d.young, make(map[rowID]Row), 0
		}
		d.bytes += weight(id)
	}
	d.young[id] = r
}

func weight(id rowID) int { return len(id.bucket) + len(id.peer) + cacheEntryBytes }
