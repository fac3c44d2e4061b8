package journal

import (
	"fmt"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// contents is everything in a journal except rows and checkpoints.
type contents struct {
	incarnation uint64
	found       uint64 // the sequence number before this opening
	totals      totals
	noted
}

// checkOwner returns the schema of the journal, or an error if it is unknown or the journal is
// another node's.
func checkOwner(d disk.Disk, name string, owner identity) (version uint64, err error) {
	readVersion := func(body *decoder) { version = body.uvarint() }
	if err := readNote(d, disk.State, noteSchema, readVersion); err != nil {
		return 0, damaged(name, err)
	}
	if version != schema && version != schemaWithAges {
		return 0, fmt.Errorf("journal %s: %w: it is version %d and this program knows %d and %d; "+
			"start the quotad release that wrote it, "+
			"or move the file aside so that the region recovers without it, as after a loss",
			name, ErrSchema, version, schemaWithAges, schema)
	}
	var of identity
	if err := readNote(d, disk.State, noteIdentity, of.read); err != nil {
		return 0, damaged(name, err)
	}
	if of != owner {
		return 0, fmt.Errorf("journal %s: %w: it belongs to %v, this is %v; "+
			"correct the path, the region or the node in the configuration",
			name, ErrForeign, of, owner)
	}
	return version, nil
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
	if c.seals, err = auditSeals(d); err != nil {
		return c, err
	}
	return c, auditEnding(d, c.totals)
}

// auditEnding compares rows and checkpoints with their totals.
func auditEnding(d disk.Disk, want totals) error {
	err := auditRecords(d, kindRow, want.rows, func(key, sealed []byte) error {
		_, err := decodeRow(key, sealed)
		return err
	})
	if err != nil {
		return err
	}
	return auditRecords(d, kindCheckpoint, want.checkpoints, func(key, sealed []byte) error {
		_, err := decodeCheckpoint(key, sealed)
		return err
	})
}

// auditRecords compares all records of a kind with their tally.
func auditRecords(d disk.Disk, k kind, want tally, check func(key, sealed []byte) error) error {
	var got tally
	err := d.Scan(k.part(), nil, func(key, sealed []byte) ([]byte, error) {
		if err := check(key, sealed); err != nil {
			return nil, fmt.Errorf("its %v %x: %w", k, key, err)
		}
		got.count++
		got.seals += sealOf(sealed)
		return nil, nil
	})
	if err == nil && got != want {
		err = fmt.Errorf("it holds %d %vs that are not the %d %vs written", got.count, k,
			want.count, k)
	}
	return err
}
