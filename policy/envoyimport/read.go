package envoyimport

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// The bounds on what one import reads. They are far above what fits into one limits document.
const (
	MaxFiles       = 256
	MaxFileBytes   = 1 << 20
	MaxBytes       = 16 << 20 // of all files together
	MaxDescriptors = 20_000   // of all files together
)

// File is one configuration file.
type File struct {
	Name string // for positions
	Text []byte
}

var endings = []string{".yaml", ".yml"}

// Read reads the .yaml and .yml files of a folder in the order of their names, and follows links.
// It passes over names that begin with a dot, among them what Kubernetes puts beside the files of a
// ConfigMap. It warns of anything else, because envoyproxy/ratelimit would read it. Positions show
// the name of the folder in front of that of a file. Read refuses more than MaxFiles files and more
// than MaxBytes bytes.
func Read(folder fs.FS, name string) ([]File, []policy.Warning, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("read folder %s: %w; name a folder that you may read", name, err)
	}
	var all []File
	var passedOver []policy.Warning
	size := 0
	for _, e := range entries {
		shown := path.Join(name, e.Name())
		switch regular, err := isRegular(folder, e.Name()); {
		case strings.HasPrefix(e.Name(), "."):
			continue
		case err != nil:
			return nil, nil, err
		case !regular, !slices.Contains(endings, path.Ext(e.Name())):
			passedOver = append(passedOver, notRead(shown, regular))
			continue
		}
		text, err := readFile(folder, e.Name())
		if err != nil {
			return nil, nil, err
		}
		all, size = append(all, File{shown, text}), size+len(text)
		if len(all) > MaxFiles || size > MaxBytes {
			return nil, nil, fmt.Errorf("%s has more than %d files or %d MiB of them: import fewer at a time",
				name, MaxFiles, MaxBytes>>20)
		}
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s has no files that end with .yaml or .yml: name the folder that envoyproxy/ratelimit reads its configuration from",
			name)
	}
	return all, passedOver, nil
}

// isRegular reports whether a name leads to a regular file. Opening a pipe would wait for its writer.
func isRegular(folder fs.FS, name string) (bool, error) {
	info, err := fs.Stat(folder, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
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
		Problem: "not read, for it is no file",
		Mend:    "if it is a folder with configuration, move its files into this one"}
	if regular {
		w.Problem, w.Mend = "not read, for its name does not end with .yaml or .yml",
			"rename it if it is configuration"
	}
	return w
}
