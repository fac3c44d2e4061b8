package journal

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// TakeBack makes the journal forget that the store's time was ever after to, by an operator's word: a
// clock was ahead, and the store has lost its data. Call it before the store is opened.
//
//   - StoreTime returns no time that a shard has shown, and none later than to.
//   - WholeSince becomes no later than to. A node may have announced rows after to that the journal
//     does not have. They belong to cells that come once more, which the operator's word covers.
//   - Of each checkpoint that was seen after to, revise returns what is to be kept of it; false:
//     nothing. It must not change the bucket or the cell.
//   - Names were answered, and read, no later than to.
//   - Rows stay, for they say what other regions may use when their cells come. So do the generation,
//     which never goes back, documents and peers, which have no time of the store.
//
// If it fails, the time of the store has not gone back, and TakeBack may be called again.
func (j *Journal) TakeBack(to quantity.StoreTime, revise func(Checkpoint) (Checkpoint, bool)) error {
	var after []byte // the last key that was read
	for more := true; more; {
		page, last, err := j.seenAfter(to, after)
		if err == nil && len(page) > 0 {
			err = j.submit(context.Background(), len(page), func(t *transaction) error { return t.revise(page, revise) })
		}
		if err != nil {
			return err
		}
		after, more = last, last != nil
	}
	return j.takeBackTimes(to)
}

// takeBackTimes takes back what is known of the store's time, and since when the journal is whole.
func (j *Journal) takeBackTimes(to quantity.StoreTime) error {
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	since := j.WholeSince()
	if since != math.MaxInt64 {
		since = min(since, to)
	}
	names := j.Names()
	for name, of := range names {
		names[name] = Name{Last: min(of.Last, to), First: of.First, Since: of.Since, Read: min(of.Read, to)}
	}
	err := j.submit(context.Background(), 1, func(t *transaction) error {
		t.storeTime = storeTime{latest: min(t.storeTime.latest, to)}
		t.note(disk.State, noteStoreTime, t.storeTime.encode())
		t.note(disk.State, noteWholeSince, encodeTime(since))
		t.note(disk.Saved, noteNames, encodeNames(names))
		return nil
	})
	if err == nil {
		j.saved.mu.Lock()
		j.saved.wholeSince, j.saved.names = since, names
		j.saved.mu.Unlock()
	}
	return err
}

// seenAfter reads rowsPage checkpoints behind the key after. It returns those that were seen after
// to, and the last key that it read; nil: there are no more.
func (j *Journal) seenAfter(to quantity.StoreTime, after []byte) (page []Checkpoint, last []byte, err error) {
	read := 0
	err = j.scan(disk.Checkpoints, after, func(key, sealed []byte) ([]byte, error) {
		if after != nil && bytes.Equal(key, after) {
			return nil, nil
		}
		if read == rowsPage {
			return nil, disk.ErrStop
		}
		c, err := decodeCheckpoint(key, sealed)
		if err != nil {
			return nil, err
		}
		if read++; c.At > to {
			page = append(page, c)
		}
		last = append(last[:0], key...)
		return nil, nil
	})
	if read < rowsPage {
		last = nil
	}
	return page, last, err
}

// revise replaces each checkpoint by what revise returns for it, or removes it.
func (t *transaction) revise(all []Checkpoint, revise func(Checkpoint) (Checkpoint, bool)) error {
	keys := make([][]byte, len(all))
	for i, c := range all {
		keys[i] = checkpointKey(c.id())
	}
	records, err := t.load(disk.Checkpoints, keys)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if records[i].sealed == nil {
			continue
		}
		was, err := decodeCheckpoint(key, records[i].sealed)
		if err != nil {
			return fmt.Errorf("checkpoint %x: %w", key, err)
		}
		next, keep := revise(was)
		switch {
		case !keep:
			if err := t.remove(kindCheckpoint, key, records[i]); err != nil {
				return err
			}
		case next != was:
			t.replace(kindCheckpoint, key, records[i], seal(key, checkpointBody(next)))
		}
	}
	return nil
}
