package envoyimport

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// TestRead: the .yaml and .yml files in the order of their names, and a warning for all else.
func TestRead(t *testing.T) {
	files, warnings, err := Read(fstest.MapFS{"b.yml": file("b"), "a.yaml": file("a"),
		".hidden.yaml": file("h"), "note.txt": file("n"), "sub/c.yaml": file("c")}, "etc/config")
	suite.Must(t, err)
	if got := fmt.Sprintf("%s", files); got != "[{etc/config/a.yaml a} {etc/config/b.yml b}]" {
		t.Error(got)
	}
	if len(warnings) != 2 || warnings[0].Pos.File != "etc/config/note.txt" ||
		!strings.Contains(warnings[1].Problem, "no file") {
		t.Errorf("%v", warnings)
	}
}

// TestReadConfigMap: Kubernetes mounts a ConfigMap as links through a folder that is a link itself.
// A link that leads nowhere, and a pipe, are passed over with a warning.
func TestReadConfigMap(t *testing.T) {
	folder := t.TempDir()
	must := func(err error) {
		t.Helper()
		suite.Must(t, err)
	}
	must(os.Mkdir(filepath.Join(folder, "..2026_01"), 0o755))
	must(os.WriteFile(filepath.Join(folder, "..2026_01", "rl.yaml"), []byte("text"), 0o644))
	must(os.Symlink("..2026_01", filepath.Join(folder, "..data")))
	must(os.Symlink(filepath.Join("..data", "rl.yaml"), filepath.Join(folder, "rl.yaml")))
	must(os.Symlink("nowhere", filepath.Join(folder, "broken.yaml")))
	files, warnings, err := Read(os.DirFS(folder), "x")
	must(err)
	if len(files) != 1 || files[0].Name != "x/rl.yaml" || string(files[0].Text) != "text" {
		t.Errorf("%s", files)
	}
	if len(warnings) != 1 || warnings[0].Pos.File != "x/broken.yaml" {
		t.Errorf("%v", warnings)
	}
}

// TestReadRefuses: an empty folder, and too many files.
func TestReadRefuses(t *testing.T) {
	many := fstest.MapFS{}
	for i := range MaxFiles + 1 {
		many[fmt.Sprintf("%d.yaml", i)] = file("")
	}
	large := fstest.MapFS{}
	for i := range MaxBytes/MaxFileBytes + 1 {
		large[fmt.Sprintf("%d.yaml", i)] = file(strings.Repeat("#", MaxFileBytes))
	}
	for want, folder := range map[string]fstest.MapFS{
		"has no files that end with .yaml or .yml": {"a.txt": file("")},
		"more than 256 files or 16 MiB":            many,
		"than 256 files or 16 MiB of them":         large,
	} {
		if _, _, err := Read(folder, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, _, err := Read(os.DirFS("/nowhere"), "/nowhere"); err == nil {
		t.Error("a folder that is not there was read")
	}
}
