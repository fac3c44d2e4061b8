package journal

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/region/journal/disk"
)

// transaction gathers the changes of all the calls that share a commit. A call sees the changes of
// those before it, which are not on the disk yet.
type transaction struct {
	disk    disk.Disk
	changes []disk.Change
	// records are those read from the disk or changed, by part and key.
	records map[disk.Part]map[string]record

	totals totals
	known  map[rowID]Row // rows read or written: durable once it is committed
	forget func(rowID)   // called for every row pruned, before the commit
}

// record is a record as the transaction leaves it.
type record struct {
	sealed []byte // nil: there is none
	change int    // which of the changes, from 1; 0: it is as on the disk
}

// dated is a record and when it may be pruned; sealed is nil if there is none.
type dated struct {
	sealed []byte
	until  int64
}

func newTransaction(d disk.Disk, before totals, forget func(rowID)) *transaction {
	t := &transaction{disk: d, records: make(map[disk.Part]map[string]record), totals: before,
		known: make(map[rowID]Row), forget: forget}
	for _, part := range disk.Parts() {
		t.records[part] = make(map[string]record)
	}
	return t
}

// load reads records from the disk, all at once, unless the transaction knows them.
func (t *transaction) load(part disk.Part, keys [][]byte) error {
	records := t.records[part]
	unknown := keys
	if len(records) > 0 {
		unknown = slices.DeleteFunc(slices.Clone(keys), func(key []byte) bool {
			_, known := records[string(key)]
			return known
		})
	}
	values, err := t.disk.Get(part, unknown...)
	if err != nil {
		return err
	}
	for i, key := range unknown {
		records[string(key)] = record{sealed: values[i]}
	}
	return nil
}

// set changes a record; without a value it removes it.
func (t *transaction) set(part disk.Part, key, sealed []byte) {
	r := t.records[part][string(key)]
	r.sealed = sealed
	if r.change == 0 {
		t.changes = append(t.changes, disk.Change{Part: part, Key: key})
		r.change = len(t.changes)
	}
	t.changes[r.change-1].Value = sealed
	t.records[part][string(key)] = r
}

// tally returns that of a kind of records.
func (t *transaction) tally(k kind) *tally {
	if k == kindRow {
		return &t.totals.rows
	}
	return &t.totals.checkpoints
}

// record merges rows into those on the disk. Rows that raise nothing change nothing.
func (t *transaction) record(rows []Row) error {
	keys := make([][]byte, len(rows))
	for i, r := range rows {
		keys[i] = rowKey(r.id())
	}
	if err := t.load(disk.Rows, keys); err != nil {
		return err
	}
	for i, r := range rows {
		if err := t.raise(keys[i], r); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) raise(key []byte, r Row) error {
	old := dated{sealed: t.records[disk.Rows][string(key)].sealed}
	if old.sealed != nil {
		was, err := decodeRow(key, old.sealed)
		if err != nil {
			return fmt.Errorf("row %x: %w", key, err)
		}
		r, old.until = was.raise(r), was.Until
		if r == was {
			t.known[r.id()] = r
			return nil
		}
	}
	t.known[r.id()] = r
	t.put(kindRow, key, old, dated{seal(key, rowBody(r)), r.Until})
	return nil
}

// checkpoint merges checkpoints into those on the disk. Older ones change nothing.
func (t *transaction) checkpoint(checkpoints []Checkpoint) error {
	keys := make([][]byte, len(checkpoints))
	for i, c := range checkpoints {
		keys[i] = checkpointKey(c.id())
	}
	if err := t.load(disk.Checkpoints, keys); err != nil {
		return err
	}
	for i, c := range checkpoints {
		if err := t.renew(keys[i], c); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) renew(key []byte, c Checkpoint) error {
	old := dated{sealed: t.records[disk.Checkpoints][string(key)].sealed}
	if old.sealed != nil {
		was, err := decodeCheckpoint(key, old.sealed)
		if err != nil {
			return fmt.Errorf("checkpoint %x: %w", key, err)
		}
		c, old.until = was.merge(c), was.Until
		if c == was {
			return nil
		}
	}
	t.put(kindCheckpoint, key, old, dated{seal(key, checkpointBody(c)), c.Until})
	return nil
}

// put writes a record in place of the old one, and moves its age.
func (t *transaction) put(k kind, key []byte, old, next dated) {
	total := t.tally(k)
	total.seals += sealOf(next.sealed)
	t.set(k.part(), key, next.sealed)
	if old.sealed == nil {
		total.count++
	} else {
		total.seals -= sealOf(old.sealed)
		if old.until == next.until {
			return
		}
		t.set(disk.Ages, ageKey(old.until, k, key), nil)
	}
	age := ageKey(next.until, k, key)
	t.set(disk.Ages, age, seal(age, nil))
}

// note replaces one note.
func (t *transaction) note(part disk.Part, key, body []byte) {
	t.set(part, key, seal(key, body))
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
