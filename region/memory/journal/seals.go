package journal

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/quotad/quotad/region/memory/journal/disk"
)

// MaxSeals is how many generations' seals a journal keeps: those of the latest.
const MaxSeals = 16

// Seal is what the receipts of one generation of the region's store are sealed with.
type Seal struct {
	Generation uint64
	Secret     string // 1 to MaxPeerBytes bytes
}

// Seals returns the seals that are kept, the earliest generation first.
func (j *Journal) Seals() []Seal { return slices.Clone(j.saved.now().seals) }

// KeepSeal keeps a seal durably, so that what it sealed is known after the store has lost it. An empty or
// a longer secret is ErrInvalid and changes nothing.
func (j *Journal) KeepSeal(s Seal) error {
	if len(s.Secret) == 0 || len(s.Secret) > MaxPeerBytes {
		return fmt.Errorf("journal: keep a seal: %w: the secret has %d bytes, not 1 to %d: leave it out",
			ErrInvalid, len(s.Secret), MaxPeerBytes)
	}
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	kept := j.Seals()
	i, known := slices.BinarySearchFunc(kept, s.Generation, func(k Seal, g uint64) int {
		switch {
		case k.Generation < g:
			return -1
		case k.Generation > g:
			return 1
		}
		return 0
	})
	same := known && kept[i] == s
	if known {
		kept[i] = s
	} else {
		kept = slices.Insert(kept, i, s)
		kept = kept[max(len(kept)-MaxSeals, 0):]
	}
	return j.save(same, disk.Saved, noteSeals, encodeSeals(kept), func() { j.saved.seals = kept })
}

func encodeSeals(all []Seal) (b []byte) {
	for _, s := range all {
		b = appendBytes(binary.AppendUvarint(b, s.Generation), s.Secret)
	}
	return b
}

// auditSeals reads the seals, which a journal of an earlier release does not have.
func auditSeals(d disk.Disk) (all []Seal, err error) {
	values, err := d.Get(disk.Saved, noteSeals)
	if err != nil || values[0] == nil {
		return nil, err
	}
	err = readNote(d, disk.Saved, noteSeals, func(body *decoder) {
		for body.err == nil && len(body.rest) > 0 {
			all = append(all, Seal{Generation: body.uvarint(), Secret: string(body.bytes())})
		}
	})
	return all, err
}
