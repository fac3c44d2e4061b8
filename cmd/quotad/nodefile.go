package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/strictyaml"
)

// maxNodeFileBytes bounds a node file, which has some twenty lines.
const maxNodeFileBytes = 16 << 10

// readNodeFile returns the values in a node file, by the path of their setting, and everything that is wrong with
// the file's form. What the values mean is the settings' business.
func readNodeFile(path string) (map[string][]value, []error) {
	src, err := files.Read(path, maxNodeFileBytes)
	if err != nil && !errors.Is(err, files.ErrTooLarge) { // of which parseNodeFile tells
		return nil, []error{fmt.Errorf("read node file: %w; check the path given to --config", err)}
	}
	return parseNodeFile(path, src)
}

// parseNodeFile reads the contents of a node file.
func parseNodeFile(path string, src []byte) (map[string][]value, []error) {
	n := &nodeFile{path: path, folder: filepath.Dir(path), values: map[string][]value{}}
	if len(src) > maxNodeFileBytes {
		n.fail(nil, "", "the file is larger than 16 KiB", "check the path given to --config: a node file has some twenty lines")
		return nil, n.errs
	}
	if root := n.parse(src); root != nil {
		n.group(root, "")
	}
	return n.values, n.errs
}

// nodeFile collects the values and the problems of one file.
type nodeFile struct {
	path   string
	folder string
	values map[string][]value
	errs   []error
}

func (n *nodeFile) fail(at *token.Token, path, problem, mend string) {
	n.errs = append(n.errs, n.at(at, path).fail(problem, mend))
}

func (n *nodeFile) at(t *token.Token, path string) place {
	pos := strictyaml.Position{File: n.path, Line: 1, Column: 1}
	if t != nil && t.Position != nil {
		pos.Line, pos.Column = t.Position.Line, t.Position.Column
	}
	return place{layer: byFile, name: path, pos: pos}
}

// parse returns the root of the file's one YAML document; nil if there is none.
func (n *nodeFile) parse(src []byte) (root ast.Node) {
	const mend = "check indentation, quotes and brackets on this line and its neighbours"
	defer func() { // the parser is not ours, and its panic is not what a user should see of a wrong file
		if r := recover(); r != nil {
			n.fail(nil, "", fmt.Sprintf("not valid YAML: the parser failed: %v", r), mend)
			root = nil
		}
	}()
	tree, err := parser.ParseBytes(src, 0)
	var positioned interface {
		GetMessage() string
		GetToken() *token.Token
	}
	switch {
	case errors.As(err, &positioned):
		n.fail(positioned.GetToken(), "", "not valid YAML: "+positioned.GetMessage(), mend)
		return nil
	case err != nil:
		n.fail(nil, "", "not valid YAML: "+err.Error(), mend)
		return nil
	case len(tree.Docs) > 1:
		n.fail(tree.Docs[1].Start, "", "a second document starts here", "keep one document in the file")
		return nil
	case len(tree.Docs) == 0 || tree.Docs[0].Body == nil:
		return nil // an empty file sets nothing
	}
	return tree.Docs[0].Body
}

// group reads a mapping whose fields are settings, or groups of them.
func (n *nodeFile) group(node ast.Node, path string) {
	m, ok := node.(*ast.MappingNode)
	if !ok {
		mend := "write settings as name: value, each on a line of its own"
		if path != "" {
			mend = fmt.Sprintf("write it like %s: {%s: ...}", path, strings.Join(fieldsOf(path), ": ..., "))
		}
		n.fail(node.GetToken(), path, "a mapping is expected here", mend)
		return
	}
	known := fieldsOf(path)
	for _, kv := range m.Values {
		name := kv.Key.GetToken().Value
		at := join(path, name)
		switch i := slices.IndexFunc(settings, func(s setting) bool { return s.path == at }); {
		case !slices.Contains(known, name):
			n.fail(kv.Key.GetToken(), at, "no such field", "use one of "+strings.Join(known, ", "))
		case i >= 0:
			n.setting(settings[i], kv)
		default:
			n.group(kv.Value, at)
		}
	}
}

// setting reads the value, or the values, of one setting.
func (n *nodeFile) setting(s setting, kv *ast.MappingValueNode) {
	if !s.list {
		n.scalar(s, kv.Value, kv.Key.GetToken())
		return
	}
	l, ok := kv.Value.(*ast.SequenceNode)
	if !ok {
		n.fail(kv.Key.GetToken(), s.path, "a list is expected here", fmt.Sprintf("write it like %s: [%s, %s]", s.path, s.kind, s.kind))
		return
	}
	for _, item := range l.Values {
		n.scalar(s, item, item.GetToken())
	}
}

// scalar takes one value as it is written: what a number or a word means depends on the setting, not on YAML.
func (n *nodeFile) scalar(s setting, node ast.Node, before *token.Token) {
	var text string
	switch v := node.(type) {
	case *ast.StringNode:
		text = v.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text = v.GetToken().Value
	case *ast.NullNode:
		n.fail(before, s.path, "no value is given", fmt.Sprintf("write a %s, or remove the line", s.kind))
		return
	default:
		n.fail(node.GetToken(), s.path, "a plain value is expected here", fmt.Sprintf("write a %s", s.kind))
		return
	}
	n.values[s.path] = append(n.values[s.path], value{text: text, folder: n.folder, place: n.at(node.GetToken(), s.path)})
}

// fieldsOf returns the fields of a group of the node file; the empty path is the file itself.
func fieldsOf(path string) []string {
	var fields []string
	for _, s := range settings {
		rest := s.path
		if path != "" {
			inside, ok := strings.CutPrefix(rest, path+".")
			if !ok {
				continue
			}
			rest = inside
		}
		field, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
