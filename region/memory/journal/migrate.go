package journal

import (
	"fmt"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// A journal of the schema before has one part more, the ages: an index of rows and checkpoints by
// their ends, which made it almost twice as large.
//
//	ages:  until (8, ordered) | kind of the record (1) | key of the record
//	       -> empty
//
// The opening that reads such a journal checks the ages with all else, and then removes them. The
// file keeps its size, and what is written later takes the room.

const (
	schemaWithAges = 3

	agesPart disk.Part = "ages"
)

func ageKey(until quantity.StoreTime, k kind, recordKey []byte) []byte {
	b := appendOrdered(make([]byte, 0, orderBytes+1+len(recordKey)), int64(until))
	return append(append(b, byte(k)), recordKey...)
}

// auditAges compares the ages with those that rows and checkpoints, which were checked, should have.
func auditAges(d disk.Disk) error {
	var want, got tally
	for _, k := range []kind{kindRow, kindCheckpoint} {
		err := d.Scan(k.part(), nil, func(key, sealed []byte) ([]byte, error) {
			until, err := untilOf(sealed)
			want.count++
			want.seals += sealOf(seal(ageKey(until, k, key), nil))
			return nil, err
		})
		if err != nil {
			return err
		}
	}
	err := d.Scan(agesPart, nil, func(key, sealed []byte) ([]byte, error) {
		if _, err := unseal(key, sealed); err != nil {
			return nil, fmt.Errorf("its age %x: %w", key, err)
		}
		got.count++
		got.seals += sealOf(sealed)
		return nil, nil
	})
	if err == nil && got != want {
		err = fmt.Errorf("its %d ages are not those of its %d rows and checkpoints",
			got.count, want.count)
	}
	return err
}

// dropAges makes the journal one of the present schema.
func (t *transaction) dropAges() {
	t.changes = append(t.changes, disk.Change{Part: agesPart})
	t.note(disk.State, noteSchema, encodeNumber(schema))
}
