package journal

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// transaction is one write transaction: the changes of all the calls that
// share a commit.
type transaction struct {
	state, saved, ages *bolt.Bucket
	rows, checkpoints  part

	totals  totals
	known   map[rowID]Row // rows read or written: durable once it is committed
	forget  func(rowID)   // called for every row pruned, before the commit
	changed bool
}

// part is all records of one kind.
type part struct {
	kind    kind
	records *bolt.Bucket
	tally   *tally // in the transaction's totals
}

// dated is a record and when it may be pruned; sealed is nil if there is none.
type dated struct {
	sealed []byte
	until  int64
}

func newTransaction(tx *bolt.Tx, before totals, forget func(rowID)) *transaction {
	t := &transaction{
		state: tx.Bucket(bucketState), saved: tx.Bucket(bucketSaved), ages: tx.Bucket(bucketAges),
		totals: before,
		known:  make(map[rowID]Row),
		forget: forget,
	}
	t.rows = part{kindRow, tx.Bucket(bucketRows), &t.totals.rows}
	t.checkpoints = part{kindCheckpoint, tx.Bucket(bucketCheckpoints), &t.totals.checkpoints}
	return t
}

// record merges rows into the file's. Rows that raise nothing change nothing.
func (t *transaction) record(rows []Row) error {
	for _, r := range rows {
		if err := t.raise(r); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) raise(r Row) error {
	key := rowKey(r.id())
	old := dated{sealed: t.rows.records.Get(key)}
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
	return t.put(t.rows, key, old, dated{seal(key, rowBody(r)), r.Until})
}

// checkpoint merges checkpoints into the file's. Older ones change nothing.
func (t *transaction) checkpoint(checkpoints []Checkpoint) error {
	for _, c := range checkpoints {
		if err := t.renew(c); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) renew(c Checkpoint) error {
	key := checkpointKey(c.id())
	old := dated{sealed: t.checkpoints.records.Get(key)}
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
	return t.put(t.checkpoints, key, old, dated{seal(key, checkpointBody(c)), c.Until})
}

// put writes a record in place of the old one, and moves its age.
func (t *transaction) put(p part, key []byte, old, next dated) error {
	t.changed = true
	p.tally.seals += sealOf(next.sealed)
	if old.sealed == nil {
		p.tally.count++
	} else {
		p.tally.seals -= sealOf(old.sealed)
	}
	if err := p.records.Put(key, next.sealed); err != nil {
		return fmt.Errorf("writing %v %x: %w", p.kind, key, err)
	}
	if old.sealed != nil {
		if old.until == next.until {
			return nil
		}
		if err := t.ages.Delete(ageKey(old.until, p.kind, key)); err != nil {
			return fmt.Errorf("removing the age of %v %x: %w", p.kind, key, err)
		}
	}
	age := ageKey(next.until, p.kind, key)
	if err := t.ages.Put(age, seal(age, nil)); err != nil {
		return fmt.Errorf("writing the age of %v %x: %w", p.kind, key, err)
	}
	return nil
}

// prune removes at most limit records with Until < before, the oldest first.
func (t *transaction) prune(before int64, limit int) (int, error) {
	// Collected first: a bolt cursor may skip entries when deleting under it.
	var old [][]byte
	cursor := t.ages.Cursor()
	for age, _ := cursor.First(); age != nil && len(old) < limit; age, _ = cursor.Next() {
		until, _, _, err := decodeAgeKey(age)
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
	_, k, key, err := decodeAgeKey(age)
	if err != nil {
		return fmt.Errorf("age %x: %w", age, err)
	}
	p := t.rows
	switch k {
	case kindRow:
		id, err := decodeRowKey(key)
		if err != nil {
			return fmt.Errorf("row %x: %w", key, err)
		}
		delete(t.known, id)
		t.forget(id)
	case kindCheckpoint:
		p = t.checkpoints
	default:
		return fmt.Errorf("age %x is that of a %v", age, k)
	}
	return t.drop(p, key, age)
}

// drop removes a record and its age.
func (t *transaction) drop(p part, key, age []byte) error {
	sealed := p.records.Get(key)
	if sealed == nil {
		return fmt.Errorf("%v %x has an age but is missing", p.kind, key)
	}
	if _, err := unseal(key, sealed); err != nil {
		return fmt.Errorf("%v %x: %w", p.kind, key, err)
	}
	t.changed = true
	p.tally.count--
	p.tally.seals -= sealOf(sealed)
	if err := p.records.Delete(key); err != nil {
		return fmt.Errorf("removing %v %x: %w", p.kind, key, err)
	}
	if err := t.ages.Delete(age); err != nil {
		return fmt.Errorf("removing the age of %v %x: %w", p.kind, key, err)
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
