package envoyimport

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// The bounds on what one import reads. They are far above what fits into one limits document.
const (
	MaxFiles       = 256
	MaxFileBytes   = 1 << 20
	MaxBytes       = 16 << 20 // of all files together
	MaxDescriptors = 20_000   // of all files together
	MaxNames       = 10_000   // of files and folders, with those that are passed over
	MaxFolders     = 16       // within one another
)

// File is one configuration file.
type File struct {
	Name string // for positions
	Text []byte
}

var endings = []string{".yaml", ".yml"}

// Read reads the .yaml and .yml files of a folder and its subfolders in the order of their names. It
// follows links to files. Like envoyproxy/ratelimit, it follows none to folders, so that no folder
// is read twice. It passes over names that begin with a dot, as that program does with
// RUNTIME_IGNOREDOTFILES, among them what Kubernetes puts beside the files of a ConfigMap. It warns
// of anything else that it does not read. Positions show the name of the folder in front of that of
// a file. Read refuses more than MaxFiles files, MaxBytes bytes, MaxNames names or MaxFolders
// folders within one another.
func Read(folder fs.FS, name string) ([]File, []policy.Warning, error) {
	w := &walk{folder: folder, name: name}
	if err := w.read(".", 1); err != nil {
		return nil, nil, err
	}
	if len(w.files) == 0 {
		return nil, nil, fmt.Errorf("%s has no files that end with .yaml or .yml: name the folder that envoyproxy/ratelimit reads its configuration from",
			name)
	}
	return w.files, w.passedOver, nil
}

// walk reads a folder and its subfolders.
type walk struct {
	folder     fs.FS
	name       string // of the folder, for positions
	files      []File
	passedOver []policy.Warning
	names      int
	size       int
}

// read reads a folder that is depth deep.
func (w *walk) read(below string, depth int) error {
	if depth > MaxFolders {
		return fmt.Errorf("%s has more than %d folders within one another: import fewer at a time",
			path.Join(w.name, below), MaxFolders)
	}
	entries, err := w.entries(below)
	if err != nil {
		return err
	}
	for _, e := range entries {
		inside := path.Join(below, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			err = w.read(inside, depth+1)
		default:
			err = w.readEntry(inside)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries returns what a folder has, in the order of its names.
func (w *walk) entries(below string) ([]fs.DirEntry, error) {
	f, err := w.folder.Open(below)
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w; name a folder that you may read", w.name, err)
	}
	defer f.Close()
	listed, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, fmt.Errorf("%s is no folder: name one", path.Join(w.name, below))
	}
	entries, err := listed.ReadDir(MaxNames - w.names + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read folder %s: %w; name a folder that you may read", w.name, err)
	}
	if w.names += len(entries); w.names > MaxNames {
		return nil, fmt.Errorf("%s has more than %d names: name the folder that has the configuration alone",
			w.name, MaxNames)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// readEntry reads a file, or passes over what is none.
func (w *walk) readEntry(inside string) error {
	shown := path.Join(w.name, inside)
	regular, err := isRegular(w.folder, inside)
	if err != nil {
		return err
	}
	if !regular || !slices.Contains(endings, path.Ext(inside)) {
		w.passedOver = append(w.passedOver, notRead(shown, regular))
		return nil
	}
	text, err := readFile(w.folder, inside)
	if err != nil {
		return err
	}
	w.files = append(w.files, File{shown, text})
	if w.size += len(text); len(w.files) > MaxFiles || w.size > MaxBytes {
		return fmt.Errorf("%s has more than %d files or %d MiB of them: import fewer at a time",
			w.name, MaxFiles, MaxBytes>>20)
	}
	return nil
}

// isRegular reports whether a name leads to a regular file. Opening a pipe would wait for its writer.
func isRegular(folder fs.FS, name string) (bool, error) {
	info, err := fs.Stat(folder, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP):
		return false, nil // a link that leads nowhere
	case err != nil:
		return false, fmt.Errorf("read configuration: %w; let this user read it", err)
	}
	return info.Mode().IsRegular(), nil
}

// readFile returns at most one byte more than a file may have, which [Convert] then refuses.
func readFile(folder fs.FS, name string) ([]byte, error) {
	f, err := folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w; let this user read it", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return text, nil
}

func notRead(name string, regular bool) policy.Warning {
	w := policy.Warning{Pos: strictyaml.Position{File: name, Line: 1, Column: 1},
		Problem: "not read, for it is no file and no folder",
		Mend:    "if it is a link to a folder with configuration, import that folder"}
	if regular {
		w.Problem, w.Mend = "not read, for its name does not end with .yaml or .yml",
			"rename it if it is configuration"
	}
	return w
}
