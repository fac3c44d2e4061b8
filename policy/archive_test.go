package policy

import (
	"os"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// archive is a file of files in the txtar format: a comment, then each file
// after a line "-- name --".
type archive struct {
	comment string
	files   []archived
}

type archived struct{ name, data string }

func readArchive(t *testing.T, path string) archive {
	t.Helper()
	src, err := os.ReadFile(path)
	suite.Must(t, err)
	var a archive
	for line := range strings.Lines(string(src)) {
		name, found := strings.CutPrefix(strings.TrimSuffix(line, " --\n"), "-- ")
		switch last := len(a.files) - 1; {
		case found && strings.HasSuffix(line, " --\n"):
			a.files = append(a.files, archived{name: name})
		case last < 0:
			a.comment += line
		default:
			a.files[last].data += line
		}
	}
	return a
}

func (a archive) write(t *testing.T, path string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(a.comment)
	for _, f := range a.files {
		b.WriteString("-- " + f.name + " --\n" + f.data)
	}
	suite.Must(t, os.WriteFile(path, []byte(b.String()), 0o644))
}

// data returns the text of a file, or nothing if there is no such file.
func (a archive) data(name string) string {
	for _, f := range a.files {
		if f.name == name {
			return f.data
		}
	}
	return ""
}
