package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mutant is a patch that removes one rule from the program.
type Mutant struct {
	Name   string // the mistake in a few words, joined by dashes
	Hole   string // the hole that it opens again, of holes_test.go
	Rule   string // the missing rule
	Edits  []Edit
	Breaks string // the invariant that should break: its name and a description
	Says   string // what must be found, as a regular expression: another failure finds nothing
	Under  string // the faults that it needs
	// Flags are flags of chaos/mutants/seeds that make these faults likely. Most are also flags of
	// quotad simulate. Within is the number of seeds in which the simulator must find the mutant.
	Flags  []string
	Within int
	// Test is a test of another package that fails without the rule, for mutants that no seed finds
	// soon enough. Within is then 0.
	Test Test
}

// Test is one test function.
type Test struct {
	Package string // such as ./algorithms
	Name    string
}

// Edit replaces a text that must occur exactly once in a file of the module.
type Edit struct {
	File string // path from the module's directory, with slashes
	Old  string
	New  string
}

// ErrStale says that an edit no longer fits the source.
var ErrStale = errors.New("the mutant is stale: fit its edit to the source, or drop it with its rule")

// Find returns the mutant of a name.
func Find(name string) (Mutant, error) {
	all, err := All()
	if err != nil {
		return Mutant{}, err
	}
	i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return Mutant{}, fmt.Errorf("no mutant %q: see chaos/mutants/testdata", name)
	}
	return all[i], nil
}

// Apply returns the edited files by name, and writes none. It fails with ErrStale if an edit does
// not fit, and also if a Go file no longer parses.
func (m Mutant) Apply(moduleDir string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.Edits {
		source, read := files[e.File]
		if !read {
			b, err := os.ReadFile(filepath.Join(moduleDir, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			source = string(b)
		}
		if n := strings.Count(source, e.Old); n != 1 {
			return nil, fmt.Errorf("mutant %s: %s holds %d times, not once:\n%s\n%w", m.Name, e.File, n, e.Old, ErrStale)
		}
		files[e.File] = strings.Replace(source, e.Old, e.New, 1)
	}
	for name, source := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution); err != nil {
			return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
		}
	}
	return files, nil
}

// Overlay writes the edited files to a directory, and returns the path of the file for -overlay of
// the go command.
func (m Mutant) Overlay(moduleDir, dir string) (string, error) {
	files, err := m.Apply(moduleDir)
	if err != nil {
		return "", err
	}
	moduleDir, err = filepath.Abs(moduleDir)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, source := range files {
		edited := filepath.Join(dir, strconv.Itoa(len(replace))+"_"+filepath.Base(name))
		if err := os.WriteFile(edited, []byte(source), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(moduleDir, filepath.FromSlash(name))] = edited
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// Build builds a command of the module, such as ./chaos/mutants/seeds, as a mutant. The error
// quotes the compiler.
func (m Mutant) Build(ctx context.Context, moduleDir, command, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if said, err := m.overlaid(ctx, moduleDir, "build", "-o", out, command); err != nil {
		return fmt.Errorf("build mutant %s: %w\n%s", m.Name, err, said)
	}
	return nil
}

// overlaid runs a go command on the module with the edited files, and returns its output.
func (m Mutant) overlaid(ctx context.Context, moduleDir, command string, args ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "quotad-mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.Overlay(moduleDir, dir)
	if err != nil {
		return nil, err
	}
	run := exec.CommandContext(ctx, "go", append([]string{command, "-overlay", overlay}, args...)...)
	run.Dir = moduleDir
	return run.CombinedOutput()
}
