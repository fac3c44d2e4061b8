package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/quotad/quotad/region/memory/journal/disk"
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
		return fmt.Errorf("journal %s: creating it: %w; "+
			"check that the folder can be made and written and that the disk has space", path, err)
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

// initialize makes the parts of a new journal in an empty file, and formats it.
func initialize(path string, owner identity) error {
	f, err := openFile(path, false)
	if err != nil {
		return err
	}
	// bbolt's own first headers name a free list. Each of the two commits replaces
	// one of them, so that in a journal neither does.
	if err = f.db.Update(makeParts); err == nil {
		err = format(f, owner)
	}
	return errors.Join(err, f.Close())
}

func makeParts(tx *bolt.Tx) error {
	for _, part := range disk.Parts() {
		if _, err := tx.CreateBucket([]byte(part)); err != nil {
			return err
		}
	}
	return nil
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
