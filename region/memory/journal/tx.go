package journal

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/region/memory/journal/disk"
)

// transaction gathers the changes of all the calls that share a commit. A call sees the changes of
// those before it, which are not on the disk yet.
type transaction struct {
	disk    disk.Disk
	changes []disk.Change
	// records are the records read from the disk or changed, by part and key. Notes are never read.
	records map[disk.Part]map[string]*record

	totals    totals
	storeTime storeTime
	forget    func(rowID) // called for every row pruned, before the commit
}

// record is a record as the transaction leaves it.
type record struct {
	sealed []byte // nil: there is no such record
	change int    // its place in changes, from 1; 0: it is as on the disk
	row    *Row   // the row in it, if a call recorded it; durable after the commit
}

func newTransaction(d disk.Disk, before totals, at storeTime, forget func(rowID)) *transaction {
	return &transaction{disk: d, records: make(map[disk.Part]map[string]*record),
		totals: before, storeTime: at, forget: forget}
}

// part returns the records of a part, with room for more of them.
func (t *transaction) part(part disk.Part, more int) map[string]*record {
	records := t.records[part]
	if records == nil {
		records = make(map[string]*record, more)
		t.records[part] = records
	}
	return records
}

// load returns the records of the given keys, in their order. It reads those that the transaction
// does not know from the disk, all at once.
func (t *transaction) load(part disk.Part, keys [][]byte) ([]*record, error) {
	records, all := t.part(part, len(keys)), make([]*record, len(keys))
	unknown := make([][]byte, 0, len(keys))
	read := make([]record, len(keys))
	for i, key := range keys {
		if all[i] = records[string(key)]; all[i] == nil {
			all[i] = &read[len(unknown)]
			records[string(key)] = all[i]
			unknown = append(unknown, key)
		}
	}
	values, err := t.disk.Get(part, unknown...)
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		read[i].sealed = value
	}
	return all, nil
}

// set changes a record; a nil value removes it.
func (t *transaction) set(part disk.Part, key []byte, r *record, sealed []byte) {
	if r.change == 0 {
		t.changes = append(t.changes, disk.Change{Part: part, Key: key})
		r.change = len(t.changes)
	}
	r.sealed, t.changes[r.change-1].Value = sealed, sealed
}

// tally returns the tally of a kind of records.
func (t *transaction) tally(k kind) *tally {
	if k == kindRow {
		return &t.totals.rows
	}
	return &t.totals.checkpoints
}

// record merges rows into those on the disk, and sets rows to the merged values. Rows that raise
// nothing change nothing.
func (t *transaction) record(rows []Row) error {
	keys := make([][]byte, len(rows))
	for i, r := range rows {
		keys[i] = rowKey(r.id())
	}
	records, err := t.load(disk.Rows, keys)
	if err != nil {
		return err
	}
	t.changes = slices.Grow(t.changes, len(rows))
	for i := range rows {
		if err := t.raise(keys[i], records[i], &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) raise(key []byte, old *record, r *Row) error {
	old.row = r
	if old.sealed == nil {
		t.add(kindRow, key, old, seal(key, rowBody(*r)))
		return nil
	}
	was, err := decodeRow(key, old.sealed)
	if err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	*r = was.raise(*r)
	if *r != was {
		t.replace(kindRow, key, old, seal(key, rowBody(*r)))
	}
	return nil
}

// recorded yields the rows that calls recorded, as they are after the commit.
func (t *transaction) recorded(yield func(Row) bool) {
	for _, r := range t.records[disk.Rows] {
		if r.row != nil && !yield(*r.row) {
			return
		}
	}
}

// checkpoint merges checkpoints into those on the disk. Older ones change nothing.
func (t *transaction) checkpoint(checkpoints []Checkpoint) error {
	keys := make([][]byte, len(checkpoints))
	for i, c := range checkpoints {
		keys[i] = checkpointKey(c.id())
	}
	records, err := t.load(disk.Checkpoints, keys)
	if err != nil {
		return err
	}
	t.changes = slices.Grow(t.changes, len(checkpoints))
	for i, c := range checkpoints {
		if err := t.renew(keys[i], records[i], c); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) renew(key []byte, old *record, c Checkpoint) error {
	if old.sealed == nil {
		t.add(kindCheckpoint, key, old, seal(key, checkpointBody(c)))
		return nil
	}
	was, err := decodeCheckpoint(key, old.sealed)
	if err != nil {
		return fmt.Errorf("checkpoint %x: %w", key, err)
	}
	c = was.merge(c)
	if c != was {
		t.replace(kindCheckpoint, key, old, seal(key, checkpointBody(c)))
	}
	return nil
}

// add writes a new record.
func (t *transaction) add(k kind, key []byte, r *record, sealed []byte) {
	total := t.tally(k)
	total.count++
	total.seals += sealOf(sealed)
	t.set(k.part(), key, r, sealed)
}

// replace writes a record in place of another.
func (t *transaction) replace(k kind, key []byte, r *record, sealed []byte) {
	t.tally(k).seals += sealOf(sealed) - sealOf(r.sealed)
	t.set(k.part(), key, r, sealed)
}

// note replaces one note, without reading it.
func (t *transaction) note(part disk.Part, key, body []byte) {
	notes := t.part(part, 0)
	r := notes[string(key)]
	if r == nil {
		r = new(record)
		notes[string(key)] = r
	}
	t.set(part, key, r, seal(key, body))
}

// commit numbers the transaction, writes the totals and makes all of it durable. One that changes
// nothing is not committed.
func (t *transaction) commit() error {
	if len(t.changes) == 0 {
		return nil
	}
	t.totals.sequence++
	t.note(disk.State, noteTotals, encodeTotals(t.totals))
	return t.disk.Commit(t.changes)
}
