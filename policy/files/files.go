// Package files reads the files that an operator names: documents, node files, certificates and
// keys. It follows links. It refuses anything but a regular file, because a pipe would hang the
// reader and a device might never end. It reads no file beyond a bound. It also reads standard
// input and what a shell puts into /dev/fd, for a bounded time.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// pipeTimeout is how long a writer into standard input, or into a shell's process substitution, may
// take.
const pipeTimeout = 10 * time.Second

var (
	// ErrNotRegular says that a path leads to no regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge says that a file has more bytes than it may.
	ErrTooLarge = errors.New("the file is too large")
)

// Read returns the content of a file of at most most bytes. For a larger file it returns most+1
// bytes and ErrTooLarge.
func Read(path string, most int) ([]byte, error) {
	// Without O_NONBLOCK, opening a pipe would wait for somebody to write into it. Regular files
	// ignore the flag.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch kind := info.Mode().Type(); {
	case kind == 0:
	case kind&fs.ModeDir == 0 && handedOver(path):
		// This fails for a terminal, which its user can end.
		_ = f.SetReadDeadline(time.Now().Add(pipeTimeout))
	default:
		return nil, fmt.Errorf("%.200q is %s: %w", path, inWords(kind), ErrNotRegular)
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%.200q was not written to its end within %s", path, pipeTimeout)
	case err != nil:
		return nil, err
	case len(b) > most:
		return b, fmt.Errorf("%.200q has more than %d bytes: %w", path, most, ErrTooLarge)
	}
	return b, nil
}

// handedOver reports whether a path is that of a file that the shell opened and handed over.
func handedOver(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") ||
		strings.HasPrefix(path, "/proc/self/fd/")
}

func inWords(kind fs.FileMode) string {
	switch {
	case kind&fs.ModeDir != 0:
		return "a folder"
	case kind&fs.ModeNamedPipe != 0:
		return "a pipe"
	case kind&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
