package journal

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// place is where Prune goes on: at the first record of a kind whose key is not below key. A record
// there may be gone by then.
type place struct {
	kind kind
	key  string
}

// front is where each round of Prune begins, and the first one after an opening.
var front = place{kind: kindRow}

// round is how far Prune has come.
type round struct {
	mu sync.Mutex // locked during Prune
	at place
}

// due are the keys of records that end before a time, by kind.
type due map[kind][][]byte

// Prune goes on with a round over the durable records: rows, then checkpoints. It looks at
// PruneLimit of them at most, removes those with Until < before (microseconds of store time since
// 1970), and returns how many. done reports whether the round is over: each record that was durable
// when it began was looked at once since then. The next call then begins a new round. So does the
// first call after an opening.
//
// Call it until done for all that ends before a time, or a few times now and then. What ends while
// a round has passed it is removed by the next round. Nothing is removed early: a record that a call
// in the same commit gave a later Until stays.
//
// Looking holds up no commit. Only what is to be removed waits for one.
func (j *Journal) Prune(before quantity.StoreTime) (pruned int, done bool, err error) {
	return j.prune(before, PruneLimit)
}

func (j *Journal) prune(before quantity.StoreTime, limit int) (pruned int, done bool, err error) {
	j.round.mu.Lock()
	defer j.round.mu.Unlock()
	ended, next, err := j.look(j.round.at, before, limit)
	if err == nil && len(ended) > 0 {
		err = j.submit(context.Background(), limit, func(t *transaction) (err error) {
			pruned, err = t.prune(before, ended)
			return err
		})
	}
	if err != nil {
		return 0, false, err
	}
	j.round.at = next
	return pruned, next == front, nil
}

// look looks at records, beginning at a place, at most limit of them. It returns those that end
// before a time, and where to go on.
func (j *Journal) look(at place, before quantity.StoreTime, limit int) (ended due, next place, err error) {
	ended, next = due{}, front
	for k, from := at.kind, at.key; k <= kindCheckpoint && next == front; k, from = k+1, "" {
		err := j.scan(k.part(), []byte(from), func(key, sealed []byte) ([]byte, error) {
			if limit == 0 {
				next = place{k, string(key)}
				return nil, disk.ErrStop
			}
			limit--
			until, err := untilOf(sealed)
			if err != nil {
				return nil, fmt.Errorf("%v %x: %w", k, key, err)
			}
			if until < before {
				ended[k] = append(ended[k], bytes.Clone(key))
			}
			return nil, nil
		})
		if err != nil {
			return nil, at, err
		}
	}
	return ended, next, nil
}

// prune removes those of the records that end before a time also after what the calls before in this
// commit did, and returns how many.
func (t *transaction) prune(before quantity.StoreTime, ended due) (pruned int, err error) {
	for _, k := range []kind{kindRow, kindCheckpoint} {
		keys := ended[k]
		records, err := t.load(k.part(), keys)
		if err != nil {
			return 0, err
		}
		t.changes = slices.Grow(t.changes, len(keys))
		for i, key := range keys {
			if records[i].sealed == nil {
				continue
			}
			until, err := untilOf(records[i].sealed)
			if err == nil && until < before {
				err = t.remove(k, key, records[i])
				pruned++
			}
			if err != nil {
				return 0, fmt.Errorf("%v %x: %w", k, key, err)
			}
		}
	}
	return pruned, nil
}

// remove removes a record, which is loaded.
func (t *transaction) remove(k kind, key []byte, r *record) error {
	if _, err := unseal(key, r.sealed); err != nil {
		return err
	}
	if k == kindRow {
		id, err := decodeRowKey(key)
		if err != nil {
			return err
		}
		t.forget(id)
		r.row = nil
	}
	total := t.tally(k)
	total.count--
	total.seals -= sealOf(r.sealed)
	t.set(k.part(), key, r, nil)
	return nil
}
