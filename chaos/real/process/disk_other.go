//go:build !linux

package process

import "errors"

// Disk would be a small file system for the journal of one node. This system has none.
type Disk struct{}

var errNoDisks = errors.New(
	"a disk that fails is an ext4 of its own, which this system does not have: run it on Linux, as root")

// DisksWork returns the reason why this machine cannot have disks that fail.
func DisksWork() error { return errNoDisks }

func newDisk(Scope, string) (*Disk, error) { return nil, errNoDisks }

// Fail has every write and fsync fail from now on.
func (*Disk) Fail() error { return errNoDisks }

// Mend mounts the disk again.
func (*Disk) Mend() error { return errNoDisks }
