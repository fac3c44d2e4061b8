package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quotad/quotad/policy/strictyaml"
)

// reader collects what is wrong with one file.
type reader struct {
	file string
	errs strictyaml.Errors
}

// value is a value of the file and the way to it.
type value struct {
	*reader
	node ast.Node
	key  *token.Token // in front of it, if it is a field
	path string
}

// mostProblems bounds the report on one file.
const mostProblems = 100

func (r *reader) fail(at *token.Token, path, problem, mend string) {
	pos := strictyaml.Position{File: r.file, Line: 1, Column: 1}
	if at != nil && at.Position != nil {
		pos.Line, pos.Column = at.Position.Line, at.Position.Column
	}
	r.failAt(pos, path, problem, mend)
}

func (r *reader) failAt(pos strictyaml.Position, path, problem, mend string) {
	if len(r.errs) < mostProblems {
		r.errs = append(r.errs, &strictyaml.Error{Pos: pos, Path: path, Problem: problem, Mend: mend})
	}
}

func (v value) fail(problem, mend string) { v.reader.fail(v.start(), v.path, problem, mend) }

// start is where a person should look: the value, or its name if it has none.
func (v value) start() *token.Token {
	if m, ok := v.node.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return m.Values[0].Key.GetToken()
	}
	if t := v.node.GetToken(); t != nil && v.node.Type() != ast.NullType || v.key == nil {
		return t
	}
	return v.key
}

func (v value) pos() strictyaml.Position {
	pos := strictyaml.Position{File: v.file, Line: 1, Column: 1}
	if t := v.start(); t != nil && t.Position != nil {
		pos.Line, pos.Column = t.Position.Line, t.Position.Column
	}
	return pos
}

// parse returns the root of the file's one YAML document; nil: there is none,
// which was reported.
func (r *reader) parse(src []byte) (root ast.Node) {
	const mend = "check indentation, quotes and brackets on this line and its neighbours"
	defer func() { // the parser is not ours, and its panic is not what a user should see of a wrong file
		if p := recover(); p != nil {
			r.fail(nil, "", fmt.Sprintf("not valid YAML: the parser failed: %v", p), mend)
			root = nil
		}
	}()
	tree, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	var positioned interface {
		GetMessage() string
		GetToken() *token.Token
	}
	switch {
	case errors.As(err, &positioned):
		r.fail(positioned.GetToken(), "", "not valid YAML: "+positioned.GetMessage(), mend)
	case err != nil:
		r.fail(nil, "", "not valid YAML: "+err.Error(), mend)
	case len(tree.Docs) > 1:
		r.fail(tree.Docs[1].Start, "", "a second document starts here", "keep one document in the file")
	case len(tree.Docs) == 0 || tree.Docs[0].Body == nil:
		r.fail(nil, "", "the file is empty", "write a scenario; quotad chaos list names some to start from")
	default:
		return tree.Docs[0].Body
	}
	return nil
}

// fields reads a mapping of known fields, of which some are required.
func (v value) fields(required, optional []string) (map[string]value, bool) {
	known := slices.Concat(required, optional)
	found, order, ok := v.mapping(fmt.Sprintf("write its fields: %s", strings.Join(known, ", ")))
	if !ok {
		return nil, false
	}
	for _, name := range order {
		if !slices.Contains(known, name) {
			v.reader.fail(found[name].key, found[name].path, "no such field here", "use one of "+orNone(known))
		}
	}
	for _, name := range required {
		if _, given := found[name]; !given {
			v.reader.fail(v.start(), join(v.path, name), "missing", "add "+name)
			ok = false
		}
	}
	return found, ok
}

// mapping reads any names with values, and the names in the order of the file.
func (v value) mapping(mend string) (found map[string]value, order []string, ok bool) {
	m, ok := v.node.(*ast.MappingNode)
	if !ok {
		v.fail("a mapping is expected here", mend)
		return nil, nil, false
	}
	found = map[string]value{}
	for _, kv := range m.Values {
		key := kv.Key.GetToken()
		name := key.Value
		if s, quoted := kv.Key.(*ast.StringNode); quoted {
			name = s.Value
		}
		if _, twice := found[name]; twice {
			v.reader.fail(key, join(v.path, name), "given twice", "keep one of the two")
			continue
		}
		found[name] = value{v.reader, kv.Value, key, join(v.path, name)}
		order = append(order, name)
	}
	return found, order, true
}

func (v value) list(mend string) ([]value, bool) {
	s, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.fail("a list is expected here", mend)
		return nil, false
	}
	all := make([]value, len(s.Values))
	for i, n := range s.Values {
		all[i] = value{v.reader, n, nil, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return all, true
}

// text reads one plain value as it is written.
func (v value) text(mend string) (string, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	v.fail("a plain value is expected here", mend)
	return "", false
}

func (v value) integer(least, most int64) int64 {
	mend := fmt.Sprintf("write a whole number from %d to %d", least, most)
	text, ok := v.text(mend)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		v.fail(fmt.Sprintf("%.40q is no whole number from %d to %d", text, least, most), mend)
		return 0
	}
	return n
}

func (v value) duration(least, most time.Duration) time.Duration {
	mend := fmt.Sprintf("write a duration like 500ms or 10s, from %s to %s", least, most)
	text, ok := v.text(mend)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		v.fail(fmt.Sprintf("%.40q is no duration from %s to %s", text, least, most), mend)
		return 0
	}
	return d
}

func (v value) flag() bool {
	if b, ok := v.node.(*ast.BoolNode); ok {
		return b.Value
	}
	v.fail("true or false is expected here", "write true, or remove the field")
	return false
}

// oneOf reads one of some words.
func (v value) oneOf(known []string) string {
	mend := "choose " + strings.Join(known, ", ")
	text, ok := v.text(mend)
	if ok && !slices.Contains(known, text) {
		v.fail(fmt.Sprintf("%.40q is none of them", text), mend)
		return ""
	}
	return text
}

// someOf reads a list of some words.
func (v value) someOf(known []string) []string {
	items, ok := v.list(fmt.Sprintf("write a list: [%s]", strings.Join(known, ", ")))
	if ok && len(items) == 0 {
		v.fail("the list is empty", "name at least one, or remove the field")
	}
	var all []string
	for _, item := range items {
		word := item.oneOf(known)
		if word != "" && slices.Contains(all, word) {
			item.fail(word+" is given twice", "keep one of the two")
		}
		all = append(all, word)
	}
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
