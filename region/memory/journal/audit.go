package journal

import (
	"fmt"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// contents is everything in a journal except rows and checkpoints.
type contents struct {
	incarnation uint64
	totals      totals
	noted
}

// checkOwner returns an error if the journal is of another schema or another node.
func checkOwner(d disk.Disk, name string, owner identity) error {
	var version uint64
	readVersion := func(body *decoder) { version = body.uvarint() }
	if err := readNote(d, disk.State, noteSchema, readVersion); err != nil {
		return damaged(name, err)
	}
	if version != schema {
		return fmt.Errorf("journal %s: %w: it is version %d and this program knows %d; "+
			"start the quotad release that wrote it, "+
			"or move the file aside so that the region recovers without it, as after a loss",
			name, ErrSchema, version, schema)
	}
	var of identity
	if err := readNote(d, disk.State, noteIdentity, of.read); err != nil {
		return damaged(name, err)
	}
	if of != owner {
		return fmt.Errorf("journal %s: %w: it belongs to %v, this is %v; "+
			"correct the path, the region or the node in the configuration",
			name, ErrForeign, of, owner)
	}
	return nil
}

// audit reads every record, and returns an error for the first that is not as it was written.
func audit(d disk.Disk) (contents, error) {
	var c contents
	for _, note := range []struct {
		part disk.Part
		key  []byte
		read func(body *decoder)
	}{
		{disk.State, noteIncarnation, func(body *decoder) { c.incarnation = body.uvarint() }},
		{disk.State, noteGeneration, func(body *decoder) { c.generation = body.uvarint() }},
		{disk.State, noteWholeSince,
			func(body *decoder) { c.wholeSince = quantity.StoreTime(body.varint()) }},
		{disk.State, noteStoreTime, c.storeTime.read},
		{disk.State, noteTotals, c.totals.read},
		{disk.Saved, notePeers, func(body *decoder) { c.peers = readPeers(body) }},
		{disk.Saved, notePolicy, c.documents.read},
	} {
		if err := readNote(d, note.part, note.key, note.read); err != nil {
			return c, err
		}
	}
	var err error
	if c.names, err = auditNames(d); err != nil {
		return c, err
	}
	return c, auditDated(d, c.totals)
}

// auditDated compares rows and checkpoints with their totals and with their ages.
func auditDated(d disk.Disk, want totals) error {
	untilOfRow := func(key, sealed []byte) (quantity.StoreTime, error) {
		r, err := decodeRow(key, sealed)
		return r.Until, err
	}
	rows, err := auditRecords(d, kindRow, want.rows, untilOfRow)
	if err != nil {
		return err
	}
	untilOfCheckpoint := func(key, sealed []byte) (quantity.StoreTime, error) {
		c, err := decodeCheckpoint(key, sealed)
		return c.Until, err
	}
	checkpoints, err := auditRecords(d, kindCheckpoint, want.checkpoints, untilOfCheckpoint)
	if err != nil {
		return err
	}
	return auditAges(d, tally{
		count: want.rows.count + want.checkpoints.count,
		seals: rows + checkpoints,
	})
}

// auditRecords compares all records of a kind with their tally. It returns the sum of the seals
// that the records' ages should have.
func auditRecords(d disk.Disk, k kind, want tally,
	until func(key, sealed []byte) (quantity.StoreTime, error)) (ages uint64, err error) {
	var got tally
	err = d.Scan(k.part(), nil, func(key, sealed []byte) ([]byte, error) {
		end, err := until(key, sealed)
		if err != nil {
			return nil, fmt.Errorf("its %v %x: %w", k, key, err)
		}
		got.count++
		got.seals += sealOf(sealed)
		ages += sealOf(seal(ageKey(end, k, key), nil))
		return nil, nil
	})
	if err == nil && got != want {
		err = fmt.Errorf("it holds %d %vs that are not the %d %vs written", got.count, k,
			want.count, k)
	}
	return ages, err
}

func auditAges(d disk.Disk, want tally) error {
	var got tally
	err := d.Scan(disk.Ages, nil, func(key, sealed []byte) ([]byte, error) {
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
