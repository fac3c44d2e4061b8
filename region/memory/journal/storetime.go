package journal

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// storeTime bounds the store's clocks: seen[i] is a lower bound of shard i, latest an upper bound
// of every shard. A single element of seen is a lower bound of all shards. If seen is empty, no
// lower bound is known.
type storeTime struct {
	seen   []quantity.StoreTime
	latest quantity.StoreTime
}

// least returns a lower bound of all shards, 0 if none is known.
func (t storeTime) least() quantity.StoreTime {
	if len(t.seen) == 0 {
		return 0
	}
	return slices.Min(t.seen)
}

// raise returns t with each bound raised to the given one, if that is later.
func (t storeTime) raise(latest quantity.StoreTime, seen []quantity.StoreTime) storeTime {
	next := storeTime{t.seen, max(t.latest, latest)}
	if len(seen) == 0 {
		return next
	}
	next.seen = make([]quantity.StoreTime, len(seen))
	for i, at := range seen {
		before := t.least() // where the store is divided otherwise than before
		if len(seen) == len(t.seen) {
			before = t.seen[i]
		}
		next.seen[i] = max(at, before)
	}
	return next
}

func (t storeTime) equal(o storeTime) bool {
	return t.latest == o.latest && slices.Equal(t.seen, o.seen)
}

// encode writes the shards' times one by one only where there are several.
func (t storeTime) encode() []byte {
	b := binary.AppendVarint(binary.AppendVarint(nil, int64(t.least())), int64(t.latest))
	if len(t.seen) > 1 {
		for _, at := range t.seen {
			b = binary.AppendVarint(b, int64(at))
		}
	}
	return b
}

func (t *storeTime) read(d *decoder) {
	*t = storeTime{[]quantity.StoreTime{quantity.StoreTime(d.varint())},
		quantity.StoreTime(d.varint())}
	if len(d.rest) > 0 {
		t.seen = nil
	}
	for len(d.rest) > 0 && d.err == nil {
		t.seen = append(t.seen, quantity.StoreTime(d.varint()))
	}
}

// shown records what is known of the store's time.
func (t *transaction) shown(latest quantity.StoreTime, seen []quantity.StoreTime) {
	if next := t.storeTime.raise(latest, seen); !next.equal(t.storeTime) {
		t.storeTime = next
		t.note(disk.State, noteStoreTime, next.encode())
	}
}

// along runs write. If write changes anything, along also records what shards have shown.
func (t *transaction) along(seen []quantity.StoreTime, write func() error) error {
	before := t.totals
	err := write()
	if t.totals != before {
		t.shown(0, seen)
	}
	return err
}

// StoreTime returns the times that SetStoreTime, Record and Checkpoint last made durable: seen by
// shard, or a single one for all shards.
func (j *Journal) StoreTime() (seen []quantity.StoreTime, latest quantity.StoreTime) {
	t := j.saved.now().storeTime
	return slices.Clone(t.seen), t.latest
}

// SetStoreTime notes durably how far the store's time has come, in microseconds since 1970. Each
// shard has shown this node the time in seen, in order of the shards, or a later one. No shard has
// shown a time after latest, or will before the next call. None of them goes back.
func (j *Journal) SetStoreTime(latest quantity.StoreTime, seen ...quantity.StoreTime) error {
	now := j.saved.now().storeTime
	if err := j.usable(); err != nil || now.raise(latest, seen).equal(now) {
		return err
	}
	return j.submit(context.Background(), 1, func(t *transaction) error {
		t.shown(latest, seen)
		return nil
	})
}
