//go:build !race

package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const modulePath = "github.com/quotad/quotad/"

// everywhere is the package that every other may import.
const everywhere = "quantity"

// pure packages have no clock, goroutine, random source, logger or I/O. These imports would bring
// one in.
var (
	pure   = []string{"algorithms", "allocator", "allocator/assign", "allocator/exchange"}
	impure = []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "os",
		"io", "net", "sync", "context"}
)

// layers are the groups of packages under region, and region itself, the lowest first. No package imports one of
// a higher layer.
var layers = []string{"region/base", "region/memory", "region/trade", "region/decide", "region", "region/front"}

// layerOf returns the place of a package in layers; -1: it is in none.
func layerOf(pkg string) int {
	return slices.IndexFunc(layers, func(layer string) bool { return pkg == layer || layer != "region" && strings.HasPrefix(pkg, layer+"/") })
}

func TestGroupsAreLayers(t *testing.T) {
	for pkg, rule := range house {
		if strings.HasPrefix(pkg, "region") && layerOf(pkg) < 0 {
			t.Errorf("package %s is in no group of %q", pkg, layers)
		}
		for _, imported := range rule.may {
			if from, to := layerOf(pkg), layerOf(imported); from >= 0 && to > from {
				t.Errorf("package %s imports %s, which is above it", pkg, imported)
			}
		}
	}
}

// TestGroupsOfCommandsStandApart: whoever mends what runs in production need not know what proves it.
func TestGroupsOfCommandsStandApart(t *testing.T) {
	groups := []string{"cmd/quotad/serve", "cmd/quotad/operate", "cmd/quotad/proof"}
	groupOf := func(pkg string) int {
		return slices.IndexFunc(groups, func(group string) bool { return isUnder(pkg, group) })
	}
	for pkg, rule := range house {
		for _, imported := range rule.may {
			if from, to := groupOf(pkg), groupOf(imported); from >= 0 && to >= 0 && from != to {
				t.Errorf("package %s imports %s, which is of another group of commands", pkg, imported)
			}
		}
	}
}

func TestImportsRunOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		rule, known := house[pkg]
		if !known {
			t.Errorf("%s: package %s has no place in the house: add it to the table with its reason", rel, pkg)
			return nil
		}
		seen[pkg] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, imported := range parsed.Imports {
			if slices.Contains([]string{`"html/template"`, `"text/template"`}, imported.Path.Value) {
				t.Errorf("%s imports %s: who runs templates has the linker keep every method, a quarter of the binary", rel, imported.Path.Value)
			}
		}
		if slices.Contains(pure, pkg) {
			ast.Inspect(parsed, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(id.Name, "float") {
					t.Errorf("%s has a %s: its results differ between CPUs", rel, id.Name)
				}
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s starts a goroutine, and %s is pure", rel, pkg)
				}
				return true
			})
		}
		for _, imported := range parsed.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			ours, ok := strings.CutPrefix(name, modulePath)
			if ok && ours != everywhere && !slices.Contains(rule.may, ours) {
				t.Errorf("%s imports %s: %s", rel, ours, rule.why)
			}
			if slices.Contains(pure, pkg) && slices.Contains(impure, name) {
				t.Errorf("%s imports %s, and %s is pure", rel, name, pkg)
			}
		}
		return nil
	})
	suite.Must(t, err)
	for pkg := range house {
		if !seen[pkg] {
			t.Errorf("the house has a place for %s, which is not there", pkg)
		}
	}
}

// wrapped are functions that tests call by way of others, and which and why.
var wrapped = map[string]string{
	"synctest.Test": "call bubble.Test, under which the race detector does not crash",
	"rapid.Check":   "call suite.Check, which tries as much under go test -short",
}

func TestTestsCallWhatIsWrapped(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := call.X.(*ast.Ident); ok {
				if name := of.Name + "." + call.Sel.Name; wrapped[name] != "" {
					t.Errorf("%s calls %s: %s", file, name, wrapped[name])
				}
			}
			return true
		})
		return nil
	})
	suite.Must(t, err)
}

// TestNodesKnowNoImitation: serving code and its tests reach Redis only through connections or the
// seam of package store. Only chaos/lab/servers and the clock of chaos/real/process use the imitation of
// a Redis.
func TestNodesKnowNoImitation(t *testing.T) {
	allowed := []string{"chaos/lab/servers", "chaos/real/process"}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") {
			return err
		}
		rel, err := filepath.Rel(root, path.Dir(filepath.ToSlash(file)))
		if err != nil || slices.Contains(allowed, filepath.ToSlash(rel)) {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range parsed.Imports {
			for _, imitation := range []string{"alicebob/miniredis", "yuin/gopher-lua"} {
				if strings.Contains(imported.Path.Value, imitation) {
					t.Errorf("%s imports %s: start it with chaos/lab/servers", file,
						imported.Path.Value)
				}
			}
		}
		return nil
	})
	suite.Must(t, err)
}

// served are the folders of the packages that run in production. They import no test double, so no
// fault and no change of the lab can affect them.
var served = []string{"algorithms", "allocator", "client", "gossip", "policy", "proto", "quantity", "region"}

// leaves are what the doubles of chaos/lab may import: seams, and the packages in whose types a
// seam is written. A double that imported what is above its seam would make an import cycle with
// that package's own tests, and could use the behaviour with which it is to be compared.
var leaves = map[string]string{
	everywhere:                   "types of numbers",
	"algorithms":                 "the scripts that the twin answers",
	"region/memory/store":        "the seam of the store",
	"region/memory/journal/disk": "the seam of the journal",
	"region/base/link":           "deadlines of connections",
	"chaos/lab/redisserver":      "which program a double starts",
	"chaos/lab/servers":          "another double",
	"chaos/lab/suite":            "how tests wait and end",
}

// TestWhatServesKnowsNoLab: serving code imports neither chaos nor an imitation of Redis, and
// chaos/lab imports only leaves.
func TestWhatServesKnowsNoLab(t *testing.T) {
	files := 0
	forEachServingFile(t, func(pkg, file string, imports []string) {
		files++
		for _, name := range imports {
			ours, local := strings.CutPrefix(name, modulePath)
			switch {
			// These put a node together, or stand in for a whole one.
			case slices.Contains([]string{"chaos/lab/cluster", "chaos/lab/node", "chaos/lab/journals",
				"chaos/lab/documents", "chaos/lab/fronts"}, pkg):
			case isUnder(pkg, "chaos/lab"):
				if _, leaf := leaves[ours]; local && !leaf {
					t.Errorf("%s imports %s, which is no leaf", file, ours)
				}
			case !slices.ContainsFunc(served,
				func(folder string) bool { return isUnder(pkg, folder) }):
			case local && (isUnder(ours, "chaos") || isUnder(ours, "cmd")):
				t.Errorf("%s imports %s, and it serves", file, ours)
			case strings.Contains(name, "alicebob/miniredis"), strings.Contains(name,
				"yuin/gopher-lua"):
				t.Errorf("%s imports %s, and it serves", file, name)
			}
		}
	})
	if files < 100 {
		t.Errorf("only %d files were looked at", files)
	}
	// The packages that a leaf imports are below it too. None of them may import what is above the
	// seams.
	for leaf := range leaves {
		for _, below := range house[leaf].may {
			if _, known := leaves[below]; !known {
				t.Errorf("%s is no leaf: it imports %s", leaf, below)
			}
		}
	}
}

// isUnder reports whether a package is in a folder of the module or below it.
func isUnder(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// forEachServingFile calls fn with every Go file that is not a test, and its imports.
func forEachServingFile(t *testing.T, fn func(pkg, file string, imports []string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, imported := range parsed.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, name)
		}
		fn(path.Dir(filepath.ToSlash(rel)), rel, imports)
		return nil
	})
	suite.Must(t, err)
}
