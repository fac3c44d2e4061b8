package strictyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// TreeBounds bounds a tree.
type TreeBounds struct {
	Depth  int // mappings and lists that stand inside one another, the outermost counted
	Values int // of all mappings and lists together, these themselves but for the outermost counted
}

// Tree reads a mapping whose values may be anything: a mapping is a map[string]any, a list an []any,
// text a string, a number a float64, true and false a bool, and an empty value or null a nil. All text
// is UTF-8. If the tree has no more than its bounds, and every value means the same in all versions of
// YAML, nothing is reported.
func (v Value) Tree(mend string, bounds TreeBounds) map[string]any {
	t := tree{TreeBounds: bounds, root: v}
	return t.mapping(v, mend, 1)
}

// tree counts the values of a tree while it is read.
type tree struct {
	TreeBounds
	root   Value
	values int
}

func (t *tree) mapping(v Value, mend string, depth int) map[string]any {
	entries, ok := v.Entries(mend)
	if !ok {
		return nil
	}
	all := make(map[string]any, len(entries))
	for _, e := range entries {
		if text, plain := plainScalar(e.Key.node); plain && unclear(text) {
			e.Key.failUnclear(text)
		} else if !utf8.ValidString(e.Name) {
			e.Key.failUTF8()
		}
		if !t.count() {
			return nil
		}
		all[e.Name] = t.value(e.Value, depth)
	}
	return all
}

func (t *tree) list(v Value, depth int) []any {
	items, _ := v.List("") // the caller knows that it is one
	all := make([]any, 0, len(items))
	for _, item := range items {
		if !t.count() {
			return nil
		}
		all = append(all, t.value(item, depth))
	}
	return all
}

// count counts a value, and reports that there are too many once.
func (t *tree) count() bool {
	if t.values++; t.values == t.Values+1 {
		t.root.Fail(fmt.Sprintf("more than %d values", t.Values), "remove some of them")
	}
	return t.values <= t.Values
}

// value reads a value inside so many mappings and lists.
func (t *tree) value(v Value, depth int) any {
	_, isMapping := v.node.(*ast.MappingNode)
	_, isList := v.node.(*ast.SequenceNode)
	switch {
	case (isMapping || isList) && depth == t.Depth:
		v.Fail(fmt.Sprintf("mappings and lists more than %d deep", t.Depth), "write it with fewer levels")
		return nil
	case isMapping:
		return t.mapping(v, "", depth+1)
	case isList:
		return t.list(v, depth+1)
	}
	return v.leaf()
}

// leaf reads what is neither a mapping nor a list.
func (v Value) leaf() any {
	if v.Null() {
		return nil
	}
	if _, isBool := v.node.(*ast.BoolNode); isBool {
		return v.Bool()
	}
	text, isText := v.IsText()
	if plain, unquoted := plainScalar(v.node); unquoted {
		switch {
		case plainNumber.MatchString(plain):
			return v.double(plain)
		case !isText || unclear(plain):
			v.failUnclear(plain)
			return nil
		}
	} else if !isText {
		v.Fail(v.Describe()+" is no value of its own", "write text, a number, true, false or null")
		return nil
	}
	if !utf8.ValidString(text) {
		v.failUTF8()
	}
	return text
}

// double reads a number. Negative zero is zero.
func (v Value) double(text string) float64 {
	n, err := strconv.ParseFloat(text, 64) // fails on overflow only
	if err != nil {
		v.Fail(InWords(text)+" is out of range", "write a number that a double can hold, or put it in quotes")
		return 0
	}
	if n == 0 {
		return 0
	}
	return n
}

var (
	// plainNumber is what JSON and all versions of YAML read as the same number.
	plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	// otherNumber is what some version of YAML reads as a number.
	otherNumber = regexp.MustCompile(`^[-+]?(0[xXoObB]?[0-9A-Fa-f_]+|[0-9][0-9_]*\.?[0-9_]*([eE][-+]?[0-9_]*)?|\.[0-9_]+([eE][-+]?[0-9_]*)?)$`)
	// otherWords are true or false for some version of YAML.
	otherWords = []string{"y", "n", "yes", "no", "on", "off"}
)

// unclear reports whether some version of YAML reads unquoted text as something else than text.
func unclear(text string) bool {
	return otherNumber.MatchString(text) || slices.Contains(otherWords, strings.ToLower(text))
}

func (v Value) failUnclear(text string) {
	v.Fail(InWords(text)+" is not the same to all readers of YAML",
		fmt.Sprintf("put text in quotes: %q; or write a number in plain digits, true or false", truncate(text)))
}

func (v Value) failUTF8() { v.Fail("not valid UTF-8", "write text that is") }
