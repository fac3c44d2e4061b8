package journal

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// MaxNames is how many names RememberNames takes.
const MaxNames = 2048

// Name is what is remembered of a node that used the region's store. All times are the store's.
type Name struct {
	Last  quantity.StoreTime // when the store last answered it
	First quantity.StoreTime // when this node first heard that it did; 0: long ago
	// If Read is not 0, all that the node did in the store from Since to Read is in this journal.
	Since, Read quantity.StoreTime
}

// Names returns the nodes that were last remembered to have used the region's store, by name.
func (j *Journal) Names() map[string]Name { return maps.Clone(j.saved.now().names) }

// RememberNames replaces the remembered nodes durably: at most MaxNames names of 1 to MaxPeerBytes bytes,
// else ErrInvalid and nothing changes.
func (j *Journal) RememberNames(names map[string]Name) error {
	if len(names) > MaxNames {
		return fmt.Errorf("journal: remember names: %w: %d names, more than %d: keep fewer", ErrInvalid, len(names), MaxNames)
	}
	for name := range names {
		if len(name) == 0 || len(name) > MaxPeerBytes {
			return fmt.Errorf("journal: remember names: %w: the name %.64q has %d bytes, not 1 to %d: leave it out",
				ErrInvalid, name, len(name), MaxPeerBytes)
		}
	}
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	names = maps.Clone(names)
	return j.save(maps.Equal(names, j.saved.now().names), disk.Saved, noteNames, encodeNames(names),
		func() { j.saved.names = names })
}

func encodeNames(names map[string]Name) (b []byte) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b = appendBytes(b, name)
		for _, at := range []quantity.StoreTime{names[name].Last, names[name].Since, names[name].Read} {
			b = binary.AppendVarint(b, int64(at))
		}
	}
	// A journal of an earlier release ends here.
	b = appendBytes(b, "")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b = binary.AppendVarint(b, int64(names[name].First))
	}
	return b
}

func readNames(d *decoder) map[string]Name {
	names := map[string]Name{}
	for d.err == nil && len(d.rest) > 0 {
		name := string(d.bytes())
		if name == "" {
			for _, name := range slices.Sorted(maps.Keys(names)) {
				n := names[name]
				n.First = quantity.StoreTime(d.varint())
				names[name] = n
			}
			break
		}
		names[name] = Name{Last: quantity.StoreTime(d.varint()), Since: quantity.StoreTime(d.varint()), Read: quantity.StoreTime(d.varint())}
	}
	return names
}

// auditNames reads the names, which a journal of an earlier release does not have.
func auditNames(d disk.Disk) (names map[string]Name, err error) {
	values, err := d.Get(disk.Saved, noteNames)
	if err != nil || values[0] == nil {
		return nil, err
	}
	err = readNote(d, disk.Saved, noteNames, func(body *decoder) { names = readNames(body) })
	return names, err
}
