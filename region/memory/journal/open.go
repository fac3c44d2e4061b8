package journal

import (
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/quotad/quotad/region/memory/journal/disk"
)

const (
	fileMode   = 0o600
	folderMode = 0o700

	// lockTimeout is how long Open waits for another process to release the file. Open may wait
	// twice, and answers within a second.
	lockTimeout = 400 * time.Millisecond
)

// Options says whose journal it is. Both names are stored when the journal is made and must be the
// same at every later opening; each has 1 to MaxPeerBytes bytes.
type Options struct {
	Region string
	Node   string

	// Direct makes each call commit by itself before it returns, in the caller's goroutine. The
	// journal then starts no goroutine and reads no clock, which a simulation needs. Calls made at
	// the same time do not share a commit.
	Direct bool

	// commit, if not nil, is called in place of a bolt transaction's Commit, so
	// that tests can hold it up or make it fail.
	commit func(*bolt.Tx) error
}

// owner returns whose journal the options name.
func (o Options) owner(journal string) (identity, error) {
	for _, name := range []string{o.Region, o.Node} {
		if len(name) == 0 || len(name) > MaxPeerBytes {
			return identity{}, fmt.Errorf("journal %s: %w: "+
				"the name %.64q of region or node has %d bytes, not 1 to %d: "+
				"correct the configuration", journal, ErrInvalid, name, len(name), MaxPeerBytes)
		}
	}
	return identity{o.Region, o.Node}, nil
}

// Open opens the journal in the file at path, after checking all of it, and durably raises its
// incarnation. If the file is missing, Open makes it, with its folder (modes 0600 and 0700). Such a
// journal has incarnation 1 and remembers nothing. While the journal is open, a text file beside
// it, path + ".owner", names the process that has it open.
//
// Open reads a journal of the schema before as well, and makes it one of the present schema in the
// same commit. An earlier release does not open it from then on.
//
// Open fails with ErrInUse, within a second, if another process has the file open; with ErrForeign
// or ErrSchema if the file is another node's or another release's; and with ErrDamaged if the file
// is not whole.
func Open(path string, opts Options) (*Journal, error) {
	owner, err := opts.owner(path)
	if err != nil {
		return nil, err
	}
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
	if opts.commit != nil {
		f.commit = opts.commit
	}
	j, err := On(f, path, opts)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.own(owner)
	return j, nil
}

// On opens the journal on a disk that Format has written to, in the same way: it checks all records
// and durably raises the incarnation. Errors use the given name for the journal. Closing the
// journal closes the disk.
func On(d disk.Disk, name string, opts Options) (*Journal, error) {
	owner, err := opts.owner(name)
	if err != nil {
		return nil, err
	}
	version, err := checkOwner(d, name, owner)
	if err != nil {
		return nil, err
	}
	c, err := audit(d)
	if err == nil && version == schemaWithAges {
		err = auditAges(d)
	}
	if err != nil {
		return nil, damaged(name, err)
	}
	c.incarnation++
	c.found = c.totals.sequence
	t := newTransaction(d, c.totals, c.storeTime, func(rowID) {})
	t.note(disk.State, noteIncarnation, encodeNumber(c.incarnation))
	if version == schemaWithAges {
		t.dropAges()
	}
	if err := t.commit(); err != nil {
		return nil, failed(name, fmt.Errorf("noting that it was opened: %w", err))
	}
	c.totals = t.totals
	return start(d, name, c, opts.Direct), nil
}

// inspect checks the structure of the file under a shared lock, which keeps writers out, so that
// the handle opened next may trust its pages.
func inspect(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("journal %s: %w; check that this user may read and write it", path, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("journal %s: it is no regular file but %v; "+
			"correct the path in the configuration", path, info.Mode())
	}
	if info.Size() == 0 {
		// bbolt would take it for a new file.
		return damaged(path, errors.New("it is empty, which a journal never is"))
	}
	f, err := openFile(path, true)
	if err != nil {
		return err
	}
	err = checkFile(path, f.handle)
	return errors.Join(err, f.Close())
}

func checkFile(path string, handle *os.File) error {
	info, err := handle.Stat()
	if err != nil {
		return fmt.Errorf("journal %s: %w; check the disk", path, err)
	}
	if err := checkStructure(handle, info.Size()); err != nil {
		return damaged(path, err)
	}
	return nil
}
