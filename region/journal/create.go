package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// boltOptions are the same for every handle. Without a free list on disk each
// commit writes less, and there is one structure fewer to be damaged.
func boltOptions() *bolt.Options {
	return &bolt.Options{
		Timeout:        lockTimeout,
		PageSize:       pageSize,
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
		NoStatistics:   true,
	}
}

// createIfMissing makes an empty journal at path unless something is there.
// It is written under another name and linked into place when whole, so that a
// crash on the way leaves no half-made journal, and two processes that start at
// once do not replace one another's.
func createIfMissing(path string, owner identity) error {
	_, err := os.Stat(path)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = create(path, owner)
	}
	if err != nil {
		return fmt.Errorf("journal %s: creating it: %w; check that the folder can be made and written and that the disk has space", path, err)
	}
	return nil
}

func create(path string, owner identity) error {
	folder := filepath.Dir(path)
	if err := makeFolder(folder); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := file.Close(); err != nil {
		return err
	}
	if err := initialize(file.Name(), owner); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(folder)
}

// initialize writes the notes of a new journal into an empty file.
func initialize(path string, owner identity) error {
	db, err := bolt.Open(path, fileMode, boltOptions())
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error { return writeEmpty(tx, owner) })
	if err == nil {
		// bbolt's own first headers name a free list. A second commit replaces
		// the other header too, so that in a journal neither does.
		err = db.Update(func(*bolt.Tx) error { return nil })
	}
	return errors.Join(err, db.Close())
}

func writeEmpty(tx *bolt.Tx, owner identity) error {
	for _, name := range [][]byte{bucketState, bucketSaved, bucketRows, bucketCheckpoints, bucketAges} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	state, saved := tx.Bucket(bucketState), tx.Bucket(bucketSaved)
	return errors.Join(
		putNote(state, noteSchema, encodeNumber(schema)),
		putNote(state, noteIdentity, encodeIdentity(owner)),
		putNote(state, noteIncarnation, encodeNumber(0)),
		putNote(state, noteGeneration, encodeNumber(0)),
		putNote(state, noteWholeSince, encodeTime(math.MaxInt64)),
		putNote(state, noteStoreTime, storeTime{}.encode()),
		putNote(state, noteTotals, encodeTotals(totals{})),
		putNote(saved, notePeers, encodePeers(nil)),
		putNote(saved, notePolicy, encodePolicy(policy{})),
	)
}

// makeFolder makes the folder and those above it, each durably: a file is only
// as durable as the names that lead to it.
func makeFolder(folder string) error {
	err := os.Mkdir(folder, folderMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolder(filepath.Dir(folder)); err != nil {
			return err
		}
		err = os.Mkdir(folder, folderMode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(folder))
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
