package strictyaml

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// The bounds on what aliases and merge keys make of a foreign file. Three lines of them can stand
// for a billion values.
const (
	// maxAdded bounds the values that aliases and merge keys add to those that are written.
	maxAdded = 100_000
	// maxExpandedDepth bounds nesting with what aliases stand for.
	maxExpandedDepth = 64
)

// expanded are the parts of YAML that a foreign file may have, unlike others.
var expanded = map[token.Type]bool{
	token.AnchorType: true, token.AliasType: true, token.MergeKeyType: true, token.TagType: true,
	token.LiteralType: true, token.FoldedType: true,
}

// checkName refuses a name in front of a colon, the last of the tokens, that is more than one token.
func (f *file) checkName(tokens token.Tokens) {
	for back := 2; back <= 3 && back <= len(tokens); back++ {
		t, name := tokens[len(tokens)-back], tokens[len(tokens)-1]
		if t.Position.Line != name.Position.Line {
			return
		}
		switch {
		case t.Type == token.AliasType && back == 2:
			f.failSyntax(t, "an alias (*name) is not allowed as a name", "write the name out")
		case t.Type == token.TagType && back == 2:
			f.failSyntax(t, "a tag (!name) is not allowed in front of a name", "remove the tag")
		case t.Type == token.AnchorType && back == 3:
			f.failSyntax(t, "an anchor (&name) is not allowed in front of a name",
				"write it on the line before, or behind the colon")
		}
	}
}

// expander replaces anchors, aliases, merge keys, tags and block text by what they stand for. Nodes
// are shared by all aliases of an anchor, so that each value keeps the place where it is written.
type expander struct {
	file    *file
	anchors map[string]*anchored
	// measures has those of the mappings and lists that were expanded.
	measures map[ast.Node]measure
	added    int
	depth    int
}

// anchored is what an anchor names.
type anchored struct {
	node ast.Node
	open bool // it has not ended yet
}

// measure says how large a value is: how many values there are in it, itself included, and how
// deep they are nested.
type measure struct{ values, depth int }

// expand returns the root of the file without anchors and the like.
func (f *file) expand(root ast.Node) ast.Node {
	e := &expander{file: f, anchors: map[string]*anchored{}, measures: map[ast.Node]measure{}}
	return e.expand(root)
}

func (e *expander) expand(node ast.Node) ast.Node {
	switch n := node.(type) {
	case *ast.MappingNode:
		return e.mapping(n)
	case *ast.SequenceNode:
		e.depth++
		for i := range n.Values {
			n.Values[i] = e.expand(n.Values[i])
		}
		e.depth--
		e.measures[n] = e.measure(slices.Values(n.Values))
	case *ast.AnchorNode:
		// A name may be given again. Each alias means the last one before it.
		a := &anchored{open: true}
		e.anchors[n.Name.GetToken().Value] = a
		a.node = e.expand(n.Value)
		a.open = false
		return a.node
	case *ast.AliasNode:
		return e.alias(n)
	case *ast.TagNode:
		return e.tag(n)
	case *ast.LiteralNode:
		return textAt(n.Start, n.Value.Value, token.DoubleQuoteType)
	}
	return node
}

// alias returns what an alias stands for.
func (e *expander) alias(n *ast.AliasNode) ast.Node {
	name := n.Value.GetToken().Value
	switch a := e.anchors[name]; {
	case a == nil:
		e.fail(n, fmt.Sprintf("no anchor before it is named &%s", InWords(name)),
			"name one that stands before it")
	case a.open:
		e.fail(n, fmt.Sprintf("&%s would hold itself", InWords(name)), "name an anchor that has ended")
	case e.add(n, a.node):
		return a.node
	}
	return n
}

// add counts a value that an alias or a merge key adds. It reports whether there is room for it.
func (e *expander) add(at, value ast.Node) bool {
	m := e.measureOf(value)
	if e.added > maxAdded {
		return false // which was reported
	}
	if e.added += m.values; e.added > maxAdded {
		e.fail(at, fmt.Sprintf("aliases and merge keys add more than %d values", maxAdded),
			"split the file, or write fewer aliases")
		return false
	}
	if e.depth+m.depth > maxExpandedDepth {
		e.fail(at, fmt.Sprintf("with what it stands for, nested more than %d levels deep",
			maxExpandedDepth), e.file.kind.TooDeep)
		return false
	}
	return true
}

func (e *expander) fail(at ast.Node, problem, mend string) {
	e.file.failSyntax(startOf(at), problem, mend)
}

func (e *expander) measureOf(node ast.Node) measure {
	if m, ok := e.measures[node]; ok {
		return m
	}
	return measure{values: 1}
}

func (e *expander) measure(inside func(func(ast.Node) bool)) measure {
	all := measure{values: 1}
	for node := range inside {
		m := e.measureOf(node)
		all.values += m.values
		all.depth = max(all.depth, m.depth)
	}
	all.depth++
	return all
}

// tag reads a value as the type that its tag names.
func (e *expander) tag(n *ast.TagNode) ast.Node {
	if a, ok := n.Value.(*ast.AnchorNode); ok { // !!str &name x is &name !!str x
		n.Value, a.Value = a.Value, n
		return e.expand(a)
	}
	node := e.expand(n.Value)
	s, isText := node.(*ast.StringNode)
	written, isScalar := plainScalar(node)
	_, isMapping := node.(*ast.MappingNode)
	_, isList := node.(*ast.SequenceNode)
	switch tag := n.Start.Value; {
	case tag == "!!str" && isText:
		return textAt(s.Token, s.Value, token.DoubleQuoteType)
	case tag == "!!str" && isScalar:
		return textAt(node.GetToken(), written, token.DoubleQuoteType)
	case (tag == "!!int" || tag == "!!bool") && isText:
		return textAt(s.Token, s.Value, token.StringType)
	case (tag == "!!int" || tag == "!!bool") && isScalar,
		tag == "!!map" && isMapping, tag == "!!seq" && isList:
		return node
	}
	e.fail(n, fmt.Sprintf("the tag %s is not allowed here", InWords(n.Start.Value)), "remove the tag")
	return node
}

// textAt returns a text that stands where at does, with or without quotes.
func textAt(at *token.Token, value string, quotes token.Type) *ast.StringNode {
	t := *at
	t.Type, t.Value = quotes, value
	return ast.String(&t)
}
