package journal

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// contents is everything in a journal but rows and checkpoints.
type contents struct {
	incarnation uint64
	generation  uint64
	wholeSince  int64
	storeTime   storeTime
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
	for _, name := range [][]byte{bucketState, bucketSaved, bucketRows, bucketCheckpoints, bucketAges} {
		if tx.Bucket(name) == nil {
			return c, errBuckets
		}
	}
	var err error
	if c.incarnation, err = getNumber(state, noteIncarnation); err != nil {
		return c, err
	}
	if c.generation, err = getNumber(state, noteGeneration); err != nil {
		return c, err
	}
	if err := readNote(state, noteWholeSince, func(d *decoder) { c.wholeSince = d.varint() }); err != nil {
		return c, err
	}
	if err := readNote(state, noteStoreTime, c.storeTime.read); err != nil {
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
	return c, auditDated(tx, c.totals)
}

// auditDated compares the dated records with their totals and with their ages.
func auditDated(tx *bolt.Tx, want totals) error {
	rows, err := auditRecords(tx.Bucket(bucketRows), kindRow, want.rows, func(key, sealed []byte) (int64, error) {
		r, err := decodeRow(key, sealed)
		return r.Until, err
	})
	if err != nil {
		return err
	}
	checkpoints, err := auditRecords(tx.Bucket(bucketCheckpoints), kindCheckpoint, want.checkpoints, func(key, sealed []byte) (int64, error) {
		c, err := decodeCheckpoint(key, sealed)
		return c.Until, err
	})
	if err != nil {
		return err
	}
	return auditAges(tx.Bucket(bucketAges), tally{
		count: want.rows.count + want.checkpoints.count,
		seals: rows + checkpoints,
	})
}

// auditRecords compares all records of a kind with their tally, and returns the
// sum of the seals that their ages should have.
func auditRecords(b *bolt.Bucket, k kind, want tally, until func(key, sealed []byte) (int64, error)) (ages uint64, err error) {
	var got tally
	err = b.ForEach(func(key, sealed []byte) error {
		end, err := until(key, sealed)
		if err != nil {
			return fmt.Errorf("its %v %x: %w", k, key, err)
		}
		got.count++
		got.seals += sealOf(sealed)
		ages += sealOf(seal(ageKey(end, k, key), nil))
		return nil
	})
	if err == nil && got != want {
		err = fmt.Errorf("it holds %d %vs that are not the %d %vs written", got.count, k, want.count, k)
	}
	return ages, err
}

func auditAges(b *bolt.Bucket, want tally) error {
	var got tally
	err := b.ForEach(func(key, sealed []byte) error {
		if _, err := unseal(key, sealed); err != nil {
			return fmt.Errorf("its age %x: %w", key, err)
		}
		got.count++
		got.seals += sealOf(sealed)
		return nil
	})
	if err == nil && got != want {
		err = fmt.Errorf("its %d ages are not those of its %d rows and checkpoints", got.count, want.count)
	}
	return err
}
