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

// TestRead: the .yaml and .yml files in the order of their names, with those of subfolders, and a
// warning for all else.
func TestRead(t *testing.T) {
	files, warnings, err := Read(fstest.MapFS{"b.yml": file("b"), "a.yaml": file("a"),
		".hidden.yaml": file("h"), "note.txt": file("n"), "b.d/c/c.yaml": file("c"),
		"b.d/note": file("n"), "b.d/.git/d.yaml": file("d"), "a.b/c.yaml": file("c")}, "etc/config")
	suite.Must(t, err)
	const want = "[{etc/config/a.b/c.yaml c} {etc/config/a.yaml a} {etc/config/b.d/c/c.yaml c} {etc/config/b.yml b}]"
	if got := fmt.Sprintf("%s", files); got != want {
		t.Error(got)
	}
	if len(warnings) != 2 || warnings[0].Pos.File != "etc/config/b.d/note" ||
		warnings[1].Pos.File != "etc/config/note.txt" {
		t.Errorf("%v", warnings)
	}
}

// TestReadConfigMap: Kubernetes mounts a ConfigMap as links through a folder that is a link itself.
// A link that leads nowhere, or to a folder, is passed over with a warning.
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
	must(os.Symlink("circle.yaml", filepath.Join(folder, "circle.yaml")))
	must(os.Symlink(".", filepath.Join(folder, "here")))
	files, warnings, err := Read(os.DirFS(folder), "x")
	must(err)
	if len(files) != 1 || files[0].Name != "x/rl.yaml" || string(files[0].Text) != "text" {
		t.Errorf("%s", files)
	}
	passedOver := ""
	for _, w := range warnings {
		passedOver += w.Pos.File + " "
	}
	if passedOver != "x/broken.yaml x/circle.yaml x/here " {
		t.Errorf("%v", warnings)
	}
}

// TestReadRefuses: an empty folder, and too many files.
func TestReadRefuses(t *testing.T) {
	many := fstest.MapFS{}
	for i := range MaxFiles + 1 {
		many[fmt.Sprintf("%d.yaml", i)] = file("")
	}
	names := fstest.MapFS{"a.yaml": file("")}
	for i := range MaxNames / 2 {
		names[fmt.Sprintf("%d/note", i)] = file("")
	}
	large := fstest.MapFS{}
	for i := range MaxBytes/MaxFileBytes + 1 {
		large[fmt.Sprintf("%d.yaml", i)] = file(strings.Repeat("#", MaxFileBytes))
	}
	for want, folder := range map[string]fstest.MapFS{
		"has no files that end with .yaml or .yml": {"a.txt": file("")},
		"more than 256 files or 16 MiB":            many,
		"than 256 files or 16 MiB of them":         large,
		"x has more than 10000 names":              names,
		"more than 16 folders within one another": {
			strings.Repeat("d/", MaxFolders) + "a.yaml": file("")},
	} {
		if _, _, err := Read(folder, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, _, err := Read(os.DirFS("/nowhere"), "/nowhere"); err == nil {
		t.Error("a folder that is not there was read")
	}
}
