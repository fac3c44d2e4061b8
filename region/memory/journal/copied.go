package journal

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// MaxCopies is how many copies RememberCopies takes.
const MaxCopies = copies.MaxLives

// Copies returns the copies that were last remembered: what is in this journal of lives of other nodes that
// had ended when the store lost data.
func (j *Journal) Copies() []copies.Copy { return slices.Clone(j.saved.now().copies) }

// RememberCopies replaces the remembered copies durably: at most MaxCopies, of nodes whose names have 1 to
// MaxPeerBytes bytes, else ErrInvalid and nothing changes. Their uses must be in the journal.
func (j *Journal) RememberCopies(all []copies.Copy) error {
	if len(all) > MaxCopies {
		return fmt.Errorf("journal: remember copies: %w: %d copies, more than %d: keep fewer", ErrInvalid, len(all), MaxCopies)
	}
	for _, c := range all {
		if len(c.Node) == 0 || len(c.Node) > MaxPeerBytes {
			return fmt.Errorf("journal: remember copies: %w: the name %.64q has %d bytes, not 1 to %d: leave it out",
				ErrInvalid, c.Node, len(c.Node), MaxPeerBytes)
		}
	}
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	all = slices.Clone(all)
	return j.save(slices.Equal(all, j.saved.now().copies), disk.Saved, noteCopies, encodeCopies(all),
		func() { j.saved.copies = all })
}

func encodeCopies(all []copies.Copy) (b []byte) {
	for _, c := range all {
		b = binary.AppendUvarint(appendBytes(b, c.Node), c.Life)
		for _, at := range []quantity.StoreTime{c.Since, c.Until, c.Read, c.Settled} {
			b = binary.AppendVarint(b, int64(at))
		}
	}
	return b
}

func readCopies(d *decoder) (all []copies.Copy) {
	for d.err == nil && len(d.rest) > 0 {
		c := copies.Copy{Node: string(d.bytes()), Life: d.uvarint()}
		for _, at := range []*quantity.StoreTime{&c.Since, &c.Until, &c.Read, &c.Settled} {
			*at = quantity.StoreTime(d.varint())
		}
		all = append(all, c)
	}
	return all
}
