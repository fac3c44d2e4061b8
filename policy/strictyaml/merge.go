package strictyaml

import (
	"fmt"
	"iter"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// merger puts together one mapping with merge keys. gopkg.in/yaml.v2 reads a mapping from its first
// line to its last, into one value, and a merge key is as if what it merges were written in its
// place. So a field behind the merge key wins over one that is merged, and a field before it loses.
type merger struct {
	*expander
	fields []*ast.MappingValueNode
	at     map[string]int // the place of each name in fields
	own    map[string]bool
}

// mapping expands a mapping.
func (e *expander) mapping(n *ast.MappingNode) ast.Node {
	e.depth++
	defer func() { e.depth-- }()
	merges := false
	for _, kv := range n.Values {
		kv.Value = e.expand(kv.Value)
		_, merge := kv.Key.(*ast.MergeKeyNode)
		merges = merges || merge
	}
	if merges {
		n = e.merge(n)
	}
	e.measures[n] = e.measure(values(n))
	return n
}

func values(n *ast.MappingNode) iter.Seq[ast.Node] {
	return func(yield func(ast.Node) bool) {
		for _, kv := range n.Values {
			if !yield(kv.Value) {
				return
			}
		}
	}
}

// merge returns a mapping with what its merge keys merge. It begins where the mapping does.
func (e *expander) merge(n *ast.MappingNode) *ast.MappingNode {
	m := &merger{expander: e, at: map[string]int{}, own: map[string]bool{}}
	for _, kv := range n.Values {
		if _, merge := kv.Key.(*ast.MergeKeyNode); !merge {
			m.write(kv)
			continue
		}
		for _, merged := range e.merged(kv) {
			for _, field := range merged.Values {
				m.overrule(kv, field)
				m.put(field)
			}
		}
	}
	return ast.Mapping(startOf(n), true, m.fields...)
}

// write adds a field of the mapping itself. It keeps one that is written twice, to be reported.
func (m *merger) write(field *ast.MappingValueNode) {
	name, ok := nameOf(field)
	if !ok || m.own[name] {
		m.fields = append(m.fields, field)
		return
	}
	m.put(field)
	m.own[name] = true
}

// put adds a field, or replaces the one of its name.
func (m *merger) put(field *ast.MappingValueNode) {
	name, ok := nameOf(field)
	i, there := m.at[name]
	if !ok || !there {
		if ok {
			m.at[name] = len(m.fields)
		}
		m.fields = append(m.fields, field)
		return
	}
	before, both := m.fields[i].Value.(*ast.MappingNode)
	after, ok := field.Value.(*ast.MappingNode)
	if both && ok && slices.Contains(m.file.kind.MergedInside, name) {
		together := *field
		together.Value = m.together(before, after)
		field = &together
	}
	m.fields[i] = field
}

// together returns a mapping with the fields of both, where those of after win.
func (e *expander) together(before, after *ast.MappingNode) *ast.MappingNode {
	m := &merger{expander: e, fields: slices.Clone(before.Values), at: map[string]int{},
		own: map[string]bool{}}
	for i, field := range before.Values {
		if name, ok := nameOf(field); ok {
			m.at[name] = i
		}
	}
	for _, field := range after.Values {
		m.write(field)
	}
	n := ast.Mapping(startOf(after), true, m.fields...)
	e.measures[n] = e.measure(values(n))
	return n
}

// overrule remarks that a merged field wins over one that the mapping has before the merge key.
func (m *merger) overrule(merge, field *ast.MappingValueNode) {
	if name, _ := nameOf(field); m.own[name] {
		own := m.fields[m.at[name]].Key.GetToken()
		m.file.remark(m.file.position(own), "", fmt.Sprintf(
			"%s loses to the one that << merges at %s, for it stands before it", InWords(name),
			m.file.position(merge.Key.GetToken())), "write << first, if this one is to win")
		delete(m.own, name)
	}
}

// merged returns the mappings that a merge key merges. Of a list, the first one wins, and comes
// last.
func (e *expander) merged(kv *ast.MappingValueNode) []*ast.MappingNode {
	items := []ast.Node{kv.Value}
	if list, ok := kv.Value.(*ast.SequenceNode); ok {
		items = slices.Clone(list.Values)
		slices.Reverse(items)
	}
	var all []*ast.MappingNode
	for _, item := range items {
		switch n := item.(type) {
		case *ast.MappingNode:
			all = append(all, n)
		case *ast.AliasNode: // one that stands for nothing, which was reported
		default:
			e.fail(kv.Key, "a merge key (<<) merges mappings, and this is none",
				"write <<: *name, where &name is a mapping")
			return nil
		}
	}
	return all
}

// nameOf returns the name of a field.
func nameOf(kv *ast.MappingValueNode) (string, bool) {
	s, ok := kv.Key.(*ast.StringNode)
	if !ok {
		return "", false
	}
	return s.Value, true
}
