package journal

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// transaction is one write transaction: the changes of all the calls that
// share a commit.
type transaction struct {
	state, saved, rows, ages *bolt.Bucket

	totals  totals
	known   map[rowID]Row // rows read or written: durable once it is committed
	forget  func(rowID)   // called for every row pruned, before the commit
	changed bool
}

func newTransaction(tx *bolt.Tx, t totals, forget func(rowID)) *transaction {
	return &transaction{
		state: tx.Bucket(bucketState), saved: tx.Bucket(bucketSaved),
		rows: tx.Bucket(bucketRows), ages: tx.Bucket(bucketAges),
		totals: t,
		known:  make(map[rowID]Row),
		forget: forget,
	}
}

// record merges rows into the file's. Rows that raise nothing change nothing.
func (t *transaction) record(rows []Row) error {
	for _, r := range rows {
		if err := t.merge(r); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) merge(r Row) error {
	key := rowKey(r.id())
	sealed := t.rows.Get(key)
	if sealed == nil {
		t.totals.rows++
		return t.put(key, r, true)
	}
	was, err := decodeRow(key, sealed)
	if err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	r = was.raise(r)
	if r == was {
		t.known[r.id()] = r
		return nil
	}
	t.totals.seals -= sealOf(sealed)
	moved := r.Until != was.Until
	if moved {
		if err := t.ages.Delete(ageKey(was.Until, key)); err != nil {
			return fmt.Errorf("removing the age of row %x: %w", key, err)
		}
	}
	return t.put(key, r, moved)
}

// put writes a row, and its age unless it is there already.
func (t *transaction) put(key []byte, r Row, withAge bool) error {
	t.changed = true
	sealed := seal(key, rowBody(r))
	t.totals.seals += sealOf(sealed)
	t.known[r.id()] = r
	if err := t.rows.Put(key, sealed); err != nil {
		return fmt.Errorf("writing row %x: %w", key, err)
	}
	if !withAge {
		return nil
	}
	age := ageKey(r.Until, key)
	if err := t.ages.Put(age, seal(age, nil)); err != nil {
		return fmt.Errorf("writing the age of row %x: %w", key, err)
	}
	return nil
}

// prune removes at most limit rows with Until < before, the oldest first.
func (t *transaction) prune(before int64, limit int) (int, error) {
	// Collected first: a bolt cursor may skip entries when deleting under it.
	var old [][]byte
	cursor := t.ages.Cursor()
	for age, _ := cursor.First(); age != nil && len(old) < limit; age, _ = cursor.Next() {
		until, _, err := decodeAgeKey(age)
		if err != nil {
			return 0, fmt.Errorf("age %x: %w", age, err)
		}
		if until >= before {
			break
		}
		old = append(old, bytes.Clone(age))
	}
	for _, age := range old {
		if err := t.remove(age); err != nil {
			return 0, err
		}
	}
	return len(old), nil
}

func (t *transaction) remove(age []byte) error {
	_, key, err := decodeAgeKey(age)
	if err != nil {
		return fmt.Errorf("age %x: %w", age, err)
	}
	sealed := t.rows.Get(key)
	if sealed == nil {
		return fmt.Errorf("row %x has an age but is missing", key)
	}
	r, err := decodeRow(key, sealed)
	if err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	t.changed = true
	t.totals.rows--
	t.totals.seals -= sealOf(sealed)
	delete(t.known, r.id())
	t.forget(r.id())
	if err := t.rows.Delete(key); err != nil {
		return fmt.Errorf("removing row %x: %w", key, err)
	}
	if err := t.ages.Delete(age); err != nil {
		return fmt.Errorf("removing the age of row %x: %w", key, err)
	}
	return nil
}

// note replaces one note.
func (t *transaction) note(b *bolt.Bucket, key, body []byte) error {
	t.changed = true
	if err := putNote(b, key, body); err != nil {
		return fmt.Errorf("writing note %q: %w", key, err)
	}
	return nil
}

// finish numbers the commit and writes the totals, as the last thing before it.
func (t *transaction) finish() error {
	t.totals.sequence++
	return t.note(t.state, noteTotals, encodeTotals(t.totals))
}
