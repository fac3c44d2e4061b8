package lab

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/quotad/quotad/region/memory/journal/disk"
)

// Disk keeps the records of a journal in memory instead of in a file. It implements disk.Disk. What
// was committed stays when the journal on it is closed, so that the next journal finds it. Safe for
// concurrent use.
type Disk struct {
	mu    sync.RWMutex
	parts map[disk.Part][]record // ordered by key
	fails error                  // every commit fails with it; nil: commits succeed
}

// record is a key with its value. The value is never written to.
type record struct {
	key   string
	value []byte
}

// NewDisk returns an empty disk. journal.Format makes a journal on it.
func NewDisk() *Disk { return &Disk{parts: map[disk.Part][]record{}} }

// FailCommits has every commit from now on fail with err and change nothing. With nil, commits
// succeed again.
func (d *Disk) FailCommits(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = err
}

// Copy returns another disk with the same records. The two share nothing.
func (d *Disk) Copy() *Disk {
	d.mu.RLock()
	defer d.mu.RUnlock()
	c := &Disk{parts: maps.Clone(d.parts)}
	for part, records := range c.parts {
		c.parts[part] = slices.Clone(records)
	}
	return c
}

// find returns the index at which a key is, or would be, in a part. The caller holds mu.
func (d *Disk) find(part disk.Part, key []byte) (at int, found bool) {
	return slices.BinarySearchFunc(d.parts[part], string(key),
		func(r record, key string) int { return cmp.Compare(r.key, key) })
}

// Get implements disk.Disk.
func (d *Disk) Get(part disk.Part, keys ...[]byte) ([][]byte, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if at, found := d.find(part, key); found {
			values[i] = d.parts[part][at].value
		}
	}
	return values, nil
}

// Scan implements disk.Disk.
func (d *Disk) Scan(part disk.Part, from []byte, visit disk.Visit) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	at, _ := d.find(part, from)
	for at < len(d.parts[part]) {
		r := d.parts[part][at]
		next, err := visit([]byte(r.key), r.value)
		switch {
		case err == disk.ErrStop:
			return nil
		case err != nil:
			return err
		case next != nil:
			at, _ = d.find(part, next)
		default:
			at++
		}
	}
	return nil
}

// Commit implements disk.Disk.
func (d *Disk) Commit(changes []disk.Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return d.fails
	}
	for _, c := range changes {
		if c.Key == nil {
			delete(d.parts, c.Part)
			continue
		}
		records := d.parts[c.Part]
		at, found := d.find(c.Part, c.Key)
		switch {
		case c.Value == nil && found:
			d.parts[c.Part] = slices.Delete(records, at, at+1)
		case c.Value == nil:
		case found:
			records[at].value = c.Value
		default:
			d.parts[c.Part] = slices.Insert(records, at, record{string(c.Key), c.Value})
		}
	}
	return nil
}

// Close implements disk.Disk. It keeps the records for the next journal.
func (d *Disk) Close() error { return nil }
