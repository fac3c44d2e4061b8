//go:build !linux

package process

import "errors"

// Disk is a small file system of its own for the journal of a node. There is
// none on this system.
type Disk struct{}

var errNoDisks = errors.New("a disk that fails is an ext4 of its own, which this system does not have: run it on Linux, as root")

// DisksWork says why there can be no disk that fails on this machine, or nil.
func DisksWork() error { return errNoDisks }

func newDisk(Scope, string) (*Disk, error) { return nil, errNoDisks }

// Fail has every write and fsync fail from now on.
func (*Disk) Fail() error { return errNoDisks }

// Mend mounts the disk anew.
func (*Disk) Mend() error { return errNoDisks }
