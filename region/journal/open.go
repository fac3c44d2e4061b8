package journal

import (
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	fileMode   = 0o600
	folderMode = 0o700

	// lockTimeout is how long Open waits for another process to let go of the
	// file. Open may wait twice, and answers within a second.
	lockTimeout = 400 * time.Millisecond
)

// Options says whose journal it is. Both names are stored when the file is made
// and must be the same at every later Open; each has 1 to MaxPeerBytes bytes.
type Options struct {
	Region string
	Node   string

	// commit, if not nil, is called in place of a bolt transaction's Commit, so
	// that tests can hold it up or make it fail.
	commit func(*bolt.Tx) error
}

// Open opens the journal at path, after checking all of it, and raises its
// incarnation durably. A missing file is made, with its folder (modes 0600 and
// 0700); such a journal has incarnation 1, and remembers nothing. While the
// journal is open, a text file beside it, path + ".owner", names its holder.
//
// It fails with ErrHeld, within a second, if another process has the file open;
// with ErrForeign or ErrSchema if the file is another node's or another
// release's; and with ErrDamaged if the file is not whole.
func Open(path string, opts Options) (*Journal, error) {
	for _, name := range []string{opts.Region, opts.Node} {
		if len(name) == 0 || len(name) > MaxPeerBytes {
			return nil, fmt.Errorf("journal %s: %w: the name %.64q of region or node has %d bytes, not 1 to %d: correct the configuration",
				path, ErrInvalid, name, len(name), MaxPeerBytes)
		}
	}
	if opts.commit == nil {
		opts.commit = (*bolt.Tx).Commit
	}
	owner := identity{opts.Region, opts.Node}
	if err := createIfMissing(path, owner); err != nil {
		return nil, err
	}
	if err := inspect(path); err != nil {
		return nil, err
	}
	f, err := openFile(path, false)
	if err != nil {
		return nil, err
	}
	c, err := f.begin(owner, opts.commit)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	writeOwner(path, owner)
	return start(f, c, opts), nil
}

// inspect checks the structure of the file under a shared lock, which keeps
// writers out, so that the handle opened next may trust its pages.
func inspect(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("journal %s: %w; check that this user may read and write it", path, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("journal %s: it is no regular file but %v; correct the path in the configuration", path, info.Mode())
	}
	if info.Size() == 0 {
		// bbolt would take it for a new file.
		return damaged(path, errors.New("it is empty, which a journal never is"))
	}
	f, err := openFile(path, true)
	if err != nil {
		return err
	}
	err = checkFile(path, f.disk)
	return errors.Join(err, f.close())
}

func checkFile(path string, disk *os.File) error {
	info, err := disk.Stat()
	if err != nil {
		return fmt.Errorf("journal %s: %w; check the disk", path, err)
	}
	if err := checkStructure(disk, info.Size()); err != nil {
		return damaged(path, err)
	}
	return nil
}

// file is an open bolt file.
type file struct {
	path string
	db   *bolt.DB
	disk *os.File // the handle db uses, which holds the lock
	lost bool     // a panic left db's mutexes locked
}

func openFile(path string, readOnly bool) (*file, error) {
	f := &file{path: path}
	options := boltOptions()
	options.ReadOnly = readOnly
	options.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		var err error
		f.disk, err = os.OpenFile(name, flag, mode)
		return f.disk, err
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

// openError says what bolt.Open's error means. What is neither the lock nor the
// operating system is the file's contents.
func openError(path string, err error) error {
	var system *os.PathError
	switch {
	case errors.Is(err, bolt.ErrTimeout):
		return fmt.Errorf("journal %s: %w by another process (%s); stop that one, or give this node a journal of its own",
			path, ErrHeld, readOwner(path))
	case errors.As(err, &system):
		return fmt.Errorf("journal %s: %w; check that it is a file this user may read and write", path, err)
	}
	return damaged(path, err)
}

// begin checks the records and raises the incarnation.
func (f *file) begin(owner identity, commit func(*bolt.Tx) error) (contents, error) {
	var c contents
	err := f.view(func(tx *bolt.Tx) (err error) {
		if err := checkOwner(tx, f.path, owner); err != nil {
			return err
		}
		if c, err = audit(tx); err != nil {
			return damaged(f.path, err)
		}
		return nil
	})
	if p := (*panicked)(nil); errors.As(err, &p) {
		return c, damaged(f.path, err)
	}
	if err != nil {
		return c, err
	}
	c.incarnation++
	t, err := f.update(c.totals, func(rowID) {}, commit, func(t *transaction) error {
		return t.note(t.state, noteIncarnation, encodeNumber(c.incarnation))
	})
	if err != nil {
		return c, failed(f.path, fmt.Errorf("noting that it was opened: %w", err))
	}
	c.totals = t.totals
	return c, nil
}

// view runs fn in a read transaction.
func (f *file) view(fn func(*bolt.Tx) error) error {
	return guarded(func() error { return f.db.View(fn) })
}

// update runs fn in a write transaction and commits it if fn changed anything.
// Any error means that the handle is not to be used again: bolt may have
// written some of it. It must not be called concurrently.
func (f *file) update(t totals, forget func(rowID), commit func(*bolt.Tx) error, fn func(*transaction) error) (*transaction, error) {
	var done *transaction
	err := guarded(func() error {
		f.lost = true
		tx, err := f.db.Begin(true)
		if err != nil {
			f.lost = false
			return err
		}
		defer func() {
			_ = tx.Rollback() // after a commit it only says that there is nothing to do
			f.lost = false
		}()
		done = newTransaction(tx, t, forget)
		if err := fn(done); err != nil || !done.changed {
			return err
		}
		if err := done.finish(); err != nil {
			return err
		}
		return commit(tx)
	})
	return done, err
}

// close releases the file. It cannot after a panic that bolt did not survive:
// bolt's own Close would wait for ever for a mutex left locked, and the lock on
// the file lasts as long as bolt's mapping of it.
func (f *file) close() error {
	if f.lost {
		return fmt.Errorf("journal %s: it stays locked by this process, whose storage library is stuck after a panic; restart the node", f.path)
	}
	return f.db.Close()
}
