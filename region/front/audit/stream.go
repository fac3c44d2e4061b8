package audit

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

const (
	// maxFile is the size from which a file is set aside and another one is begun. keptFiles is
	// how many older ones are kept, as PATH.1 (the latest) and so on, so the disk is bounded.
	maxFile   = 64 << 20
	keptFiles = 3
)

// stream is where lines go.
type stream struct {
	to   io.Writer
	file *os.File // nil: to is another stream
	size int64
	most int64 // of a file
}

// begin opens the file to write to.
func (s *stream) begin(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return fmt.Errorf("%s is not a regular file", path)
	}
	s.file, s.to, s.size = f, f, info.Size()
	return nil
}

func (s *stream) write(line []byte) error {
	if err := s.setAside(len(line)); err != nil {
		return err
	}
	_, err := s.to.Write(line)
	s.size += int64(len(line))
	return err
}

// setAside begins another file if the present one has no room for so many bytes more.
func (s *stream) setAside(more int) error {
	if s.file == nil || s.size+int64(more) <= s.most {
		return nil
	}
	path := s.file.Name()
	for n := keptFiles; n > 0; n-- {
		from := path
		if n > 1 {
			from += "." + strconv.Itoa(n-1)
		}
		if err := os.Rename(from, path+"."+strconv.Itoa(n)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	old := s.file
	if err := s.begin(path); err != nil {
		return err
	}
	return old.Close()
}

func (s *stream) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
