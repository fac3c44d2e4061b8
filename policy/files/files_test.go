package files

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestRead: a regular file is read up to its bound, also through links; anything else is refused at
// once.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	suite.Must(t, errors.Join(os.WriteFile(at("file"), []byte("12345"), 0o600),
		os.Symlink("file", at("link")), os.Symlink("pipe", at("linked")),
		syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("loop", at("loop"))))
	l, err := net.Listen("unix", at("socket"))
	suite.Must(t, err)
	defer l.Close()
	for _, c := range []struct {
		path string
		most int
		want string
		says string
	}{
		{at("file"), 5, "12345", ""},
		{at("link"), 5, "12345", ""},
		{at("file"), 4, "12345", "has more than 4 bytes"},
		{at("file"), 2, "123", "has more than 2 bytes"},
		{at("pipe"), 5, "", "is a pipe: not a regular file"},
		{at("linked"), 5, "", "is a pipe: not a regular file"},
		{"/dev/zero", 5, "", "is a device: not a regular file"},
		{dir, 5, "", "is a folder: not a regular file"},
		{"/dev/fd/" + dir, 5, "", "no such file"},
		{at("socket"), 5, "", ""},
		{at("missing"), 5, "", "no such file"},
		{at("loop"), 5, "", "too many levels of symbolic links"},
	} {
		got, err := Read(c.path, c.most)
		if fails := c.says != "" || c.path == at("socket"); string(got) != c.want ||
			(err != nil) != fails || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s, at most %d: %q, %v; want %q and %q", c.path, c.most, got, err, c.want,
				c.says)
		}
	}
}

// TestReadHandedOver: a shell's process substitution is a pipe that is being written to already.
func TestReadHandedOver(t *testing.T) {
	r, w, err := os.Pipe()
	suite.Must(t, err)
	defer r.Close()
	go func() {
		_, _ = w.WriteString("12345")
		_ = w.Close()
	}()
	if got, err := Read(fmt.Sprintf("/dev/fd/%d", r.Fd()), 5); err != nil ||
		string(got) != "12345" {
		t.Errorf("read %q, %v", got, err)
	}
}
