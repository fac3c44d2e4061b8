package journal

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// contents is everything in a journal but the rows.
type contents struct {
	incarnation uint64
	generation  uint64
	totals      totals
	peers       []string
	policy      policy
}

var errBuckets = errors.New("its parts are missing: it is damaged, or a bbolt file that is no journal")

// checkOwner reports a journal of another schema or another node.
func checkOwner(tx *bolt.Tx, path string, owner identity) error {
	state := tx.Bucket(bucketState)
	if state == nil {
		return damaged(path, errBuckets)
	}
	version, err := getNumber(state, noteSchema)
	if err != nil {
		return damaged(path, err)
	}
	if version != schema {
		return fmt.Errorf("journal %s: %w: it is version %d and this program knows %d; start the quotad release that wrote it, "+
			"or move the file aside so that the region recovers without it, as after a loss", path, ErrSchema, version, schema)
	}
	var of identity
	if err := readNote(state, noteIdentity, of.read); err != nil {
		return damaged(path, err)
	}
	if of != owner {
		return fmt.Errorf("journal %s: %w: it belongs to %v, this is %v; correct the path, the region or the node in the configuration",
			path, ErrForeign, of, owner)
	}
	return nil
}

// audit reads every record and reports the first that is not what was written.
func audit(tx *bolt.Tx) (contents, error) {
	var c contents
	state, saved := tx.Bucket(bucketState), tx.Bucket(bucketSaved)
	if state == nil || saved == nil || tx.Bucket(bucketRows) == nil || tx.Bucket(bucketAges) == nil {
		return c, errBuckets
	}
	var err error
	if c.incarnation, err = getNumber(state, noteIncarnation); err != nil {
		return c, err
	}
	if c.generation, err = getNumber(state, noteGeneration); err != nil {
		return c, err
	}
	if err := readNote(state, noteTotals, c.totals.read); err != nil {
		return c, err
	}
	if err := readNote(saved, notePeers, func(d *decoder) { c.peers = readPeers(d) }); err != nil {
		return c, err
	}
	if err := readNote(saved, notePolicy, c.policy.read); err != nil {
		return c, err
	}
	return c, auditRows(tx, c.totals)
}

// auditRows compares the rows with their totals and with their ages.
func auditRows(tx *bolt.Tx, want totals) error {
	var got totals
	var wantAges, gotAges uint64 // sums of the seals of ages
	err := tx.Bucket(bucketRows).ForEach(func(key, sealed []byte) error {
		r, err := decodeRow(key, sealed)
		if err != nil {
			return fmt.Errorf("its row %x: %w", key, err)
		}
		got.rows++
		got.seals += sealOf(sealed)
		wantAges += sealOf(seal(ageKey(r.Until, key), nil))
		return nil
	})
	if err != nil {
		return err
	}
	if got.rows != want.rows || got.seals != want.seals {
		return fmt.Errorf("it holds %d rows that are not the %d rows written", got.rows, want.rows)
	}
	ages := uint64(0)
	err = tx.Bucket(bucketAges).ForEach(func(key, sealed []byte) error {
		if _, err := unseal(key, sealed); err != nil {
			return fmt.Errorf("its age %x: %w", key, err)
		}
		ages++
		gotAges += sealOf(sealed)
		return nil
	})
	if err != nil {
		return err
	}
	if ages != want.rows || gotAges != wantAges {
		return fmt.Errorf("its %d ages are not those of its %d rows", ages, want.rows)
	}
	return nil
}
