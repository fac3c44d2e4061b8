// Package files reads the files that an operator names: documents, node files, certificates and keys. What is no regular file
// would hang the reader (a pipe), never end (a device) or be half of something, so it is refused, links followed; and no file
// is read beyond a bound. Standard input and what a shell puts into /dev/fd are read as well, for a bounded time.
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

// pipeTimeout is how long whoever writes into standard input, or into a process substitution of the shell, may take.
const pipeTimeout = 10 * time.Second

var (
	// ErrNotRegular says that a path leads to no regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge says that a file has more bytes than it may.
	ErrTooLarge = errors.New("the file is too large")
)

// Read returns what stands in a file of at most so many bytes. Of a larger one it returns one byte more, and ErrTooLarge.
func Read(path string, most int) ([]byte, error) {
	// Not to wait for whoever may some day write into a pipe; a regular file knows no waiting.
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
		_ = f.SetReadDeadline(time.Now().Add(pipeTimeout)) // fails where it is a terminal, which its user can end
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

// handedOver says whether a path is that of an open file, which a shell handed over.
func handedOver(path string) bool {
	for _, prefix := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return path == "/dev/stdin"
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
