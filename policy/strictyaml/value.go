package strictyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Value is a value of a file, with its path. Its methods read the value as one type. If the value
// is of another type they report that and return a zero value.
type Value struct {
	file *file
	node ast.Node
	path string
	// before is the key or the dash in front of the value, if there is one.
	before *token.Token
}

// Entry is one name of a mapping with its value.
type Entry struct {
	Name  string
	Key   Value // the name as a value, to report what is wrong with it
	Value Value
}

// Object is a mapping that may have some fields and no others.
type Object struct {
	Value
	fields map[string]Value
	// mistyped holds missing fields for which an unknown field was probably meant. One report is
	// enough for both.
	mistyped map[string]bool
}

// Given reports whether there is a value: the root of an empty file is none.
func (v Value) Given() bool { return v.node != nil }

// Path names the field, as in "limits[0].window".
func (v Value) Path() string { return v.path }

// Pos returns the place to show a reader: that of the value or, if the value is left empty, that of
// the key or dash in front of it.
func (v Value) Pos() Position {
	t := startOf(v.node)
	if t.Type == token.ImplicitNullType && v.before != nil {
		t = v.before
	}
	return v.file.position(t)
}

// KeyPos returns the place of the name or the dash in front of the value.
func (v Value) KeyPos() Position { return v.file.position(v.before) }

// Fail reports a problem of the value, and how to mend it.
func (v Value) Fail(problem, mend string) { v.FailAt(v.Pos(), problem, mend) }

// FailAt reports a problem of the value at another place.
func (v Value) FailAt(at Position, problem, mend string) {
	v.file.fail(at, v.path, problem, mend)
}

// Add adds problems that another reader found in the same file.
func (v Value) Add(all Errors) {
	for _, e := range all {
		v.file.fail(e.Pos, e.Path, e.Problem, e.Mend)
	}
}

// Failures counts the problems that were found in the file so far. It tells whether a part of the
// file was valid.
func (v Value) Failures() int { return v.file.failures }

// Err returns every problem found in the file, in the order of the file, as [Errors]; nil if there
// is none.
func (v Value) Err() error {
	if len(v.file.errs) == 0 {
		return nil
	}
	v.file.errs.sort()
	return v.file.errs
}

// Remarks returns what is valid in the file, and was read in a way that its author may not expect:
// all of it, or MaxErrors remarks if there are more.
func (v Value) Remarks() Errors { return v.file.remarks }

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

// child returns the path of a part of v.
func (v Value) child(name string) string {
	if !plainName.MatchString(name) {
		name = strconv.Quote(truncate(name))
	}
	if v.path == "" {
		return name
	}
	return v.path + "." + name
}

// Entries reads names with values, in the order of the file. It reports later duplicates of a name
// and leaves them out. ok is false only if the value is not a mapping.
func (v Value) Entries(mend string) (entries []Entry, ok bool) {
	m, ok := v.node.(*ast.MappingNode)
	if !ok {
		v.Fail(v.Describe()+" stands where a mapping is expected", mend)
		return nil, false
	}
	first := make(map[string]Position, len(m.Values))
	for _, kv := range m.Values {
		key := Value{file: v.file, node: kv.Key, path: v.path}
		name, ok := key.Text("write a name before the colon")
		if !ok {
			continue
		}
		key.path = v.child(name)
		if at, twice := first[name]; twice {
			key.Fail(fmt.Sprintf("given twice, first at %s", at), "keep one of the two")
			continue
		}
		first[name] = key.Pos()
		value := Value{file: v.file, node: kv.Value, path: key.path, before: kv.Key.GetToken()}
		entries = append(entries, Entry{name, key, value})
	}
	return entries, true
}

// Object reads a mapping that may have the known fields, those to be passed over, and no others.
func (v Value) Object(mend string, known []string, passed ...string) (Object, bool) {
	entries, ok := v.Entries(mend)
	if !ok {
		return Object{}, false
	}
	o := Object{Value: v, fields: make(map[string]Value), mistyped: make(map[string]bool)}
	for _, e := range entries {
		if slices.Contains(known, e.Name) || slices.Contains(passed, e.Name) {
			o.fields[e.Name] = e.Value
			continue
		}
		e.Key.Fail("no such field", DidYouMean(e.Name, known))
		if meant, ok := suggest(e.Name, known); ok {
			o.mistyped[meant] = true
		}
	}
	return o, true
}

// Peek returns a field of a mapping and reports nothing. It serves a value whose fields depend on
// one of them. [Value.Object] reads the value afterwards.
func (v Value) Peek(name string) (Value, bool) {
	m, _ := v.node.(*ast.MappingNode)
	if m == nil {
		return Value{}, false
	}
	for _, kv := range m.Values {
		if key, ok := kv.Key.(*ast.StringNode); ok && key.Value == name {
			return Value{v.file, kv.Value, v.child(name), key.GetToken()}, true
		}
	}
	return Value{}, false
}

// Field returns a field, if it is given.
func (o Object) Field(name string) (Value, bool) {
	f, given := o.fields[name]
	return f, given
}

// Required returns a field that must be there, and reports that it is missing.
func (o Object) Required(name, mend string) (Value, bool) {
	f, given := o.fields[name]
	if !given && !o.mistyped[name] {
		o.At(name).Fail("missing", mend)
	}
	return f, given
}

// Optional reads a field with read, if it is given. If not, it returns usual.
func Optional[T any](o Object, name string, usual T, read func(Value) T) T {
	if f, given := o.fields[name]; given {
		return read(f)
	}
	return usual
}

// Needed reads a field that must be there with read. If it is missing, Needed reports that and
// returns a zero value.
func Needed[T any](o Object, name, mend string, read func(Value) T) (needed T) {
	if f, given := o.Required(name, mend); given {
		needed = read(f)
	}
	return needed
}

// At returns a field in order to report a problem of it. A field that is not given has the place of
// the object.
func (o Object) At(name string) Value {
	if f, given := o.fields[name]; given {
		return f
	}
	o.path = o.child(name)
	return o.Value
}

// List reads a sequence.
func (v Value) List(mend string) ([]Value, bool) {
	s, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.Fail(v.Describe()+" stands where a list is expected", mend)
		return nil, false
	}
	items := make([]Value, len(s.Values))
	for i, node := range s.Values {
		items[i] = Value{v.file, node, fmt.Sprintf("%s[%d]", v.path, i), s.Entries[i].Start}
	}
	return items, true
}

// Null reports whether the value is left empty, or written as null or ~.
func (v Value) Null() bool {
	_, null := v.node.(*ast.NullNode)
	return null
}
