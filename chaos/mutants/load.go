package mutants

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed testdata/*.txtar
var testdata embed.FS

// All returns the mutants, file by file of testdata. The error names file, line and field.
var All = sync.OnceValues(func() (all []Mutant, err error) {
	names, err := fs.Glob(testdata, "testdata/*.txtar")
	for _, name := range names {
		text, unread := testdata.ReadFile(name)
		some, bad := parse(name, text)
		all, err = append(all, some...), errors.Join(err, unread, bad)
	}
	return all, err
})

// fields are what is said of a mutant before its edits. A mutant has all but flags, and either within
// or test.
var fields = []string{"hole", "rule", "breaks", "under", "says", "flags", "within", "test"}

// parse returns the mutants in a file, which doc.go describes, or the first mistake in it.
func parse(file string, text []byte) (all []Mutant, err error) {
	archive := txtar.Parse(text)
	line := 1 + bytes.Count(archive.Comment, []byte("\n"))
	old := false // the last section was an old text
	for _, section := range archive.Files {
		what, source, _ := strings.Cut(section.Name, " ")
		if old != (what == "new") {
			return nil, fmt.Errorf("%s:%d: an old text is followed by its new one, and nothing else is", file, line)
		}
		switch edited := strings.TrimRight(string(section.Data), "\n"); {
		case what == "old" && (source == "" || len(all) == 0):
			return nil, fmt.Errorf("%s:%d: write -- old FILE --, below the mutant", file, line)
		case what == "old":
			m := &all[len(all)-1]
			m.Edits = append(m.Edits, Edit{File: source, Old: edited})
		case what == "new":
			edits := all[len(all)-1].Edits
			edits[len(edits)-1].New = edited
		default:
			m := Mutant{Name: section.Name}
			if at, err := m.read(edited); err != nil {
				return nil, fmt.Errorf("%s:%d: mutant %s: %w", file, line+at, m.Name, err)
			}
			all = append(all, m)
		}
		old = what == "old"
		line += 1 + bytes.Count(section.Data, []byte("\n"))
	}
	if old {
		return nil, fmt.Errorf("%s:%d: the last old text has no new one", file, line)
	}
	return all, nil
}

// read reads the fields of a mutant. With an error it returns the line, counted from the mutant's
// name on.
func (m *Mutant) read(text string) (line int, err error) {
	var given []string
	for l := range strings.Lines(text) {
		line++
		field, value, _ := strings.Cut(strings.TrimSpace(l), ": ")
		switch {
		case !slices.Contains(fields, field):
			return line, fmt.Errorf("no field is called %q; write one of %s, as name: value", field, strings.Join(fields, ", "))
		case value == "":
			return line, fmt.Errorf("%s is empty", field)
		case slices.Contains(given, field):
			return line, fmt.Errorf("%s is given twice", field)
		}
		given = append(given, field)
		if err := m.set(field, value); err != nil {
			return line, fmt.Errorf("%s: %w", field, err)
		}
	}
	for _, field := range fields[:5] {
		if !slices.Contains(given, field) {
			return 0, fmt.Errorf("%s is missing", field)
		}
	}
	if slices.Contains(given, "within") == slices.Contains(given, "test") {
		return 0, errors.New("give one of within and test")
	}
	return 0, nil
}

// set sets one field.
func (m *Mutant) set(field, value string) (err error) {
	texts := map[string]*string{"hole": &m.Hole, "rule": &m.Rule, "breaks": &m.Breaks, "under": &m.Under, "says": &m.Says}
	switch field {
	case "flags":
		m.Flags = strings.Fields(value)
	case "within":
		if m.Within, err = strconv.Atoi(value); err == nil && m.Within < 1 {
			err = errors.New("no seed is run")
		}
	case "test":
		var both bool
		if m.Test.Package, m.Test.Name, both = strings.Cut(value, " "); !both {
			err = errors.New("write the package and the function, as ./algorithms TestLuaEqualsTwin")
		}
	default:
		*texts[field] = value
	}
	return err
}
