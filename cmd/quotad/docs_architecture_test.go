//go:build !race

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedPath matches a path of the repository in code marks: "allocator/lend.go", or
// "allocator/lend.go: Kept, Spare" with what the file declares. A method is named as Type.Method.
var namedPath = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)+)(?:: (\\w[\\w., ]*))?`")

// TestDocsArchitectureIsThere: each file and folder that the pages about the code name exists, and each
// Go file declares what the page says it does. A page that names fewer declarations than it should is
// not read as it is written.
func TestDocsArchitectureIsThere(t *testing.T) {
	for at, least := range map[string]int{"docs/development/architecture.md": 80, "CONTRIBUTING.md": 15,
		"docs/explanation/ledger.md": 0} {
		p := readPage(t, at)
		if declared := checkDeclared(t, p); declared < least {
			t.Errorf("%s names %d declarations, want at least %d", at, declared, least)
		}
	}
}

// checkDeclared checks a page, and returns how many declarations it names.
func checkDeclared(t *testing.T, p *page) (declared int) {
	t.Helper()
	for _, l := range p.prose {
		for _, named := range namedPath.FindAllStringSubmatch(l.text, -1) {
			checkExists(t, p, l, named[1])
			if named[2] == "" {
				continue
			}
			there := declarations(t, named[1])
			for name := range strings.SplitSeq(named[2], ", ") {
				declared++
				if !slices.Contains(there, name) {
					t.Errorf("%s:%d: %s does not declare %s", p.path, l.number, named[1], name)
				}
			}
		}
	}
	return declared
}

func checkExists(t *testing.T, p *page, l line, at string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(at))); err != nil {
		t.Errorf("%s:%d: there is no %s", p.path, l.number, at)
	}
}

// declarations returns the names that a Go file declares at its top level. Those of methods have
// their types before them. Of a file that is not there, or not in Go, it returns nothing.
func declarations(t *testing.T, at string) (names []string) {
	t.Helper()
	if path.Ext(at) != ".go" {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repository, filepath.FromSlash(at)), nil,
		parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, receiver(d)+d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver returns what stands before the name of a method, "Type."; for a function it is empty.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if pointer, is := of.(*ast.StarExpr); is {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return of.(*ast.Ident).Name + "."
}
