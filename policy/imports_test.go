//go:build !race

package policy

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestImports keeps policy at the bottom. Everything that decides, plans or serves is built on the
// document. So policy must not import any of it, except the names and bounds of the algorithms.
func TestImports(t *testing.T) {
	reasons := map[string]string{
		"github.com/fsnotify/fsnotify": "Watch",
		"github.com/cespare/xxhash/v2": "BucketID.Hash",

		"github.com/quotad/quotad/algorithms":        "the algorithms' names, cells and bounds",
		"github.com/quotad/quotad/calendar":          "windows that people count by",
		"github.com/quotad/quotad/policy/zones":      "the rules of their time zones",
		"github.com/quotad/quotad/quantity":          "units",
		"github.com/quotad/quotad/policy/files":      "reading no more than a document, and no pipe",
		"github.com/quotad/quotad/policy/strictyaml": "YAML, positions of values",
	}
	files, err := filepath.Glob("*.go")
	suite.Must(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		suite.Must(t, err)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			suite.Must(t, err)
			standard := !strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
			if _, known := reasons[path]; !standard && !known {
				t.Errorf("%s imports %s; policy imports the standard library and %v", name, path,
					reasons)
			}
		}
	}
}
