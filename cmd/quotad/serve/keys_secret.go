package serve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
)

// outFlag adds the flag that names the file of a secret.
func outFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "out", "", "`file` to write it to, made for its owner alone (default: standard output)")
}

// writeSecret writes a line to a new file that its owner alone can read, or to out if path is empty.
// With more it is added to a file that is there. A file that others can read is refused: what a shell
// makes by > is one.
func writeSecret(out io.Writer, path, line string, more bool) error {
	if path == "" {
		_, err := fmt.Fprintln(out, line)
		return err
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !more {
		how |= os.O_EXCL
	}
	f, err := os.OpenFile(path, how, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exit.Usage(fmt.Errorf("--out: %s is there already: name another file, or remove it", path))
	}
	if err != nil {
		return exit.Usage(fmt.Errorf("--out: %w", err))
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = exit.Usage(fmt.Errorf("--out: others can read %s (%v): chmod 600 it, and write it again",
			path, info.Mode().Perm()))
	}
	if err == nil {
		_, err = fmt.Fprintln(f, line)
	}
	return errors.Join(err, f.Close())
}
