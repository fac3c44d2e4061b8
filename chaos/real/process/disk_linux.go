package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"unsafe"
)

// Disk is a small file system for the journal of one node: a file with ext4, mounted through a loop
// device. It needs root and mkfs.ext4.
type Disk struct {
	image, at string
}

const (
	// diskBytes is its size: bbolt takes 64 KiB, and ext4 some for itself.
	diskBytes = 24 << 20
	// shutDown is the request EXT4_IOC_SHUTDOWN. noFlush is its flag to lose data that is not yet
	// written.
	shutDown = 0x8004587d
	noFlush  = 2
)

// DisksWork returns nil if this machine can have disks that fail, and otherwise the reason why not.
func DisksWork() error {
	switch _, err := exec.LookPath("mkfs.ext4"); {
	case os.Geteuid() != 0:
		return errors.New("a disk that fails is a file system of its own, which only root may mount: run it as root, for example in a container with --privileged")
	case err != nil:
		return fmt.Errorf("a disk that fails is made with mkfs.ext4: %w; install e2fsprogs", err)
	}
	return nil
}

// newDisk mounts a disk on a node's data folder.
func newDisk(scope Scope, node string) (*Disk, error) {
	if err := DisksWork(); err != nil {
		return nil, err
	}
	d := &Disk{image: filepath.Join(node, "disk"), at: filepath.Join(node, "data")}
	if err := os.Mkdir(d.at, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(d.image, nil, 0o644); err != nil {
		return nil, err
	}
	if err := os.Truncate(d.image, diskBytes); err != nil {
		return nil, err
	}
	if err := system("mkfs.ext4", "-q", "-F", d.image); err != nil {
		return nil, err
	}
	if err := d.mount(); err != nil {
		return nil, err
	}
	// This fails if the disk was not mounted again after a failure.
	scope.Cleanup(func() { _ = d.unmount() })
	return d, nil
}

func (d *Disk) mount() error { return system("mount", "-o", "loop", d.image, d.at) }

func (d *Disk) unmount() error { return system("umount", d.at) }

// Fail has every write and fsync fail from now on. Data not yet written is lost, as when a disk is
// pulled out. Fail also checks that writes fail.
func (d *Disk) Fail() error {
	f, err := os.Open(d.at)
	if err != nil {
		return fmt.Errorf("fail the disk at %s: %w", d.at, err)
	}
	defer f.Close()
	flags := uint32(noFlush)
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutDown,
		uintptr(unsafe.Pointer(&flags))); e != 0 {
		return fmt.Errorf("fail the disk at %s: %w; its ext4 must know how to be shut down", d.at,
			e)
	}
	if err := os.WriteFile(filepath.Join(d.at, "tried"), []byte("x"), 0o644); err == nil {
		return fmt.Errorf("fail the disk at %s: it still takes what is written; its ext4 must know how to be shut down", d.at)
	}
	return nil
}

// Mend mounts the disk again, with its content at the time of the failure. Its node must have
// ended.
func (d *Disk) Mend() error { return errors.Join(d.unmount(), d.mount()) }

func system(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}
