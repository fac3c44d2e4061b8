package journal

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// prune removes at most limit records with Until < before, the oldest first.
func (t *transaction) prune(before quantity.StoreTime, limit int) (int, error) {
	ages, err := t.agesBefore(before, limit)
	if err != nil {
		return 0, err
	}
	if err := t.loadPruned(ages); err != nil {
		return 0, err
	}
	for _, age := range ages {
		if err := t.remove(age); err != nil {
			return 0, err
		}
	}
	return len(ages), nil
}

// loadPruned loads the records that have these ages, those of each kind all at once.
func (t *transaction) loadPruned(ages [][]byte) error {
	keys := map[kind][][]byte{}
	for _, age := range ages {
		_, k, key, err := decodeAgeKey(age)
		if err == nil && k != kindRow && k != kindCheckpoint {
			err = fmt.Errorf("it is that of a %v", k)
		}
		if err != nil {
			return fmt.Errorf("age %x: %w", age, err)
		}
		keys[k] = append(keys[k], key)
	}
	for k, keys := range keys {
		if _, err := t.load(k.part(), keys); err != nil {
			return err
		}
	}
	t.part(disk.Ages, len(ages))
	t.changes = slices.Grow(t.changes, 2*len(ages))
	return nil
}

// agesBefore returns the ages of the records to prune: those on the disk that the transaction did
// not change, and those that it wrote.
func (t *transaction) agesBefore(before quantity.StoreTime, limit int) (ages [][]byte, err error) {
	changed := t.records[disk.Ages]
	err = t.disk.Scan(disk.Ages, nil, func(age, _ []byte) ([]byte, error) {
		until, _, _, err := decodeAgeKey(age)
		if err != nil {
			return nil, fmt.Errorf("age %x: %w", age, err)
		}
		if until >= before || len(ages) == limit {
			return nil, disk.ErrStop
		}
		if _, ours := changed[string(age)]; !ours {
			ages = append(ages, bytes.Clone(age))
		}
		return nil, nil
	})
	if err != nil || len(changed) == 0 {
		return ages, err
	}
	for age, r := range changed {
		if r.sealed != nil && quantity.StoreTime(ordered([]byte(age))) < before {
			ages = append(ages, []byte(age))
		}
	}
	slices.SortFunc(ages, bytes.Compare)
	return ages[:min(len(ages), limit)], nil
}

// remove removes a record, which is loaded, and its age.
func (t *transaction) remove(age []byte) error {
	_, k, key, err := decodeAgeKey(age)
	if err != nil {
		return fmt.Errorf("age %x: %w", age, err)
	}
	r := t.records[k.part()][string(key)]
	if r.sealed == nil {
		return fmt.Errorf("%v %x has an age but is missing", k, key)
	}
	if _, err := unseal(key, r.sealed); err != nil {
		return fmt.Errorf("%v %x: %w", k, key, err)
	}
	if k == kindRow {
		id, err := decodeRowKey(key)
		if err != nil {
			return fmt.Errorf("row %x: %w", key, err)
		}
		t.forget(id)
		r.row = nil
	}
	total := t.tally(k)
	total.count--
	total.seals -= sealOf(r.sealed)
	t.set(k.part(), key, r, nil)
	t.setUnread(disk.Ages, age, nil)
	return nil
}
