package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/quotad/quotad/region/memory/journal/disk"
)

var errParts = errors.New(
	"its parts are missing: it is damaged, or a bbolt file that is no journal")

// file is a bbolt file as a disk.Disk. Each part is a bbolt bucket of the same name.
type file struct {
	path   string
	db     *bolt.DB
	handle *os.File             // the file that db uses, which holds the lock
	commit func(*bolt.Tx) error // ends a transaction
	stuck  atomic.Bool          // a panic left db's mutexes locked
	owned  bool                 // there is an owner's note to remove
}

func openFile(path string, readOnly bool) (*file, error) {
	f := &file{path: path, commit: (*bolt.Tx).Commit}
	options := boltOptions()
	options.ReadOnly = readOnly
	options.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		var err error
		f.handle, err = os.OpenFile(name, flag, mode)
		return f.handle, err
	}
	err := guarded(func() (err error) {
		f.db, err = bolt.Open(path, fileMode, options)
		return err
	})
	if err == nil {
		return f, nil
	}
	return nil, openError(path, err)
}

// openError returns what bolt.Open's error means. If the cause is neither the lock nor the
// operating system, it is the file's contents.
func openError(path string, err error) error {
	var system *os.PathError
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("journal %s: %w by another process (%s); "+
			"stop that one, or give this node a journal of its own",
			path, ErrInUse, readOwner(path))
	case errors.As(err, &system):
		return fmt.Errorf("journal %s: %w; check that it is a file this user may read and write",
			path, err)
	}
	return damaged(path, err)
}

// view runs fn in a read transaction.
func (f *file) view(fn func(*bolt.Tx) error) error {
	return guarded(func() error {
		tx, err := f.begin()
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it changed nothing
		return fn(tx)
	})
}

// begin begins a read transaction. If reading the file's headers panics, bbolt leaves its mutexes
// locked, which begin notes in stuck.
func (f *file) begin() (*bolt.Tx, error) {
	begun := false
	defer func() {
		if !begun {
			f.stuck.Store(true)
		}
	}()
	tx, err := f.db.Begin(false)
	begun = true
	return tx, err
}

// viewPart runs fn in a read transaction with a cursor over a part.
func (f *file) viewPart(part disk.Part, fn func(*bolt.Cursor) error) error {
	return f.view(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte(part))
		if bucket == nil {
			return errParts
		}
		return fn(bucket.Cursor())
	})
}

// Get implements disk.Disk.
func (f *file) Get(part disk.Part, keys ...[]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	err := f.viewPart(part, func(cursor *bolt.Cursor) error {
		size := 0
		for i, key := range keys {
			found, value := cursor.Seek(key)
			if bytes.Equal(found, key) {
				values[i] = value
				size += len(value)
			}
		}
		// The values are copied, because bbolt's memory is gone with the transaction.
		copies := make([]byte, 0, size)
		for i, value := range values {
			if value != nil {
				start := len(copies)
				copies = append(copies, value...)
				values[i] = copies[start:]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// Scan implements disk.Disk.
func (f *file) Scan(part disk.Part, from []byte, visit disk.Visit) error {
	err := f.viewPart(part, func(cursor *bolt.Cursor) error {
		key, value := cursor.Seek(from)
		for key != nil {
			next, err := visit(key, value)
			if err != nil {
				return err
			}
			if next != nil {
				key, value = cursor.Seek(next)
			} else {
				key, value = cursor.Next()
			}
		}
		return nil
	})
	if err == disk.ErrStop {
		return nil
	}
	return err
}

// Commit implements disk.Disk. After any error the file must not be used again: bbolt may have
// written some of the changes.
func (f *file) Commit(changes []disk.Change) error {
	return guarded(func() error {
		ended := false
		defer func() {
			if !ended {
				f.stuck.Store(true)
			}
		}()
		tx, err := f.db.Begin(true)
		if err != nil {
			ended = true
			return err
		}
		defer func() {
			_ = tx.Rollback() // after a commit it only reports that there is nothing to do
			ended = true
		}()
		if err := makeChanges(tx, changes); err != nil {
			return err
		}
		return f.commit(tx)
	})
}

func makeChanges(tx *bolt.Tx, changes []disk.Change) error {
	for _, c := range changes {
		if c.Key == nil {
			if err := tx.DeleteBucket([]byte(c.Part)); err != nil {
				return fmt.Errorf("removing its %s: %w", c.Part, err)
			}
			continue
		}
		bucket := tx.Bucket([]byte(c.Part)) // which bbolt remembers
		if bucket == nil {
			return errParts
		}
		var err error
		if c.Value == nil {
			err = bucket.Delete(c.Key)
		} else {
			err = bucket.Put(c.Key, c.Value)
		}
		if err != nil {
			return fmt.Errorf("changing %x in its %s: %w", c.Key, c.Part, err)
		}
	}
	return nil
}

// own leaves a note beside the file, until Close, saying who has it open.
func (f *file) own(owner identity) {
	writeOwner(f.path, owner)
	f.owned = true
}

// Close implements disk.Disk. It fails after a panic in which bbolt left a mutex locked: bbolt's
// own Close would wait for that mutex for ever. The lock on the file then lasts as long as bbolt's
// mapping of it.
func (f *file) Close() error {
	if f.owned {
		removeOwner(f.path)
	}
	if f.stuck.Load() {
		return fmt.Errorf("journal %s: it stays locked by this process, "+
			"whose storage library is stuck after a panic; restart the node", f.path)
	}
	return f.db.Close()
}
