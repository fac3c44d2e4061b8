package nodeconfig

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/strictyaml"
)

// nodeKind describes a node file for package strictyaml. An empty file sets nothing.
var nodeKind = strictyaml.Kind{
	MaxBytes: 16 << 10,
	TooLarge: "check the path given to --config: a node file has some twenty lines",
	TooDeep:  mendGroup,
}

const mendGroup = "write settings as name: value, each on a line of its own"

// readFile returns the values in a node file, by the path of their setting, and everything that is
// wrong with the form of the file. The settings check the values.
func readFile(path string, settings []Setting) (map[string][]value, []error) {
	if path == "" {
		return nil, nil
	}
	src, err := files.Read(path, nodeKind.MaxBytes)
	// parseFile reports a file that is too large.
	if err != nil && !errors.Is(err, files.ErrTooLarge) {
		return nil, []error{fmt.Errorf("read node file: %w; check the path given to --config", err)}
	}
	values, err := parseFile(path, src, settings)
	if problems, ok := errors.AsType[strictyaml.Errors](err); ok {
		return values, problems.Unwrap()
	}
	return values, nil
}

// parseFile reads the contents of a node file.
func parseFile(path string, src []byte, settings []Setting) (map[string][]value, error) {
	root, err := strictyaml.Read(path, src, nodeKind)
	if err != nil || !root.Given() {
		return nil, err
	}
	f := &nodeFile{filepath.Dir(path), settings, map[string][]value{}}
	if limits, is := root.Peek("limits"); is {
		root.FailAt(limits.KeyPos(), "this is a limits document, and no node file",
			fmt.Sprintf("name it in the node file, as policy: %s, and give the node file here", filepath.Base(path)))
	} else {
		f.group(root)
	}
	return f.values, root.Err()
}

// nodeFile collects the values of one file.
type nodeFile struct {
	folder   string
	settings []Setting
	values   map[string][]value
}

// group reads a mapping whose fields are settings or groups of settings.
func (f *nodeFile) group(v strictyaml.Value) {
	known, mend := fieldsOf(f.settings, v.Path()), mendGroup
	if v.Path() != "" {
		mend = fmt.Sprintf("write it like %s: {%s: ...}", v.Path(), strings.Join(known, ": ..., "))
	}
	o, ok := v.Object(mend, known)
	if !ok {
		return
	}
	for _, name := range known {
		field, given := o.Field(name)
		if !given {
			continue
		}
		same := func(s Setting) bool { return s.Path == field.Path() }
		if i := slices.IndexFunc(f.settings, same); i >= 0 {
			f.setting(f.settings[i], field)
		} else {
			f.group(field)
		}
	}
}

// setting takes the value or the values of one setting as text. The setting, not YAML, decides what
// a number or a word means.
func (f *nodeFile) setting(s Setting, v strictyaml.Value) {
	items := []strictyaml.Value{v}
	if s.list {
		items, _ = v.List(fmt.Sprintf("write it like %s: [%s, %s]", s.Path, s.Kind, s.Kind))
	}
	for _, item := range items {
		text, ok := item.Plain(fmt.Sprintf("write it like %s: %s, or remove the line", s.Path, s.Kind))
		if ok {
			at := place{layer: byFile, name: s.Path, pos: item.Pos()}
			f.values[s.Path] = append(f.values[s.Path], value{text, f.folder, at})
		}
	}
}

// fieldsOf returns the fields of a group of the node file. The empty path is the file itself.
func fieldsOf(settings []Setting, group string) []string {
	var fields []string
	for _, s := range settings {
		rest, inside := s.Path, true
		if group != "" {
			rest, inside = strings.CutPrefix(s.Path, group+".")
		}
		field, _, _ := strings.Cut(rest, ".")
		if inside && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}
