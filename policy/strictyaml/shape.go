package strictyaml

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// The bounds on the shape of a file. The parser recurses for each level and for each key of a block
// mapping. Whenever it fills in an empty value, it moves all tokens that follow. A megabyte of
// nothing else would take it minutes.
const (
	// maxDepth bounds nesting. Limits documents need four levels, and eight more for metadata. A file of
	// another program may have metadata at the end of a path, and twice as many levels.
	maxDepth, foreignDepth = 16, 32
	// maxMappingKeys bounds the keys of one block mapping. The largest mapping of a valid file has
	// the regions of a limits document: 64.
	maxMappingKeys = 128
	// maxEmptyValues bounds the values left empty, each of which is an error.
	maxEmptyValues = 1000
)

// shape follows the nesting of a token stream without building anything.
type shape struct {
	depth     int    // the most levels
	flow      []flow // open brackets and braces
	entryLine int    // line of the last "-"
	entryRun  int    // "-" in a row on that line, as in "- - - x"
	blocks    []blockMapping
	empty     int // values left empty

	last, beforeLast *token.Token
}

// flow is an open bracket or brace.
type flow struct {
	opened token.Type
	colon  bool // the entry has a colon
}

// blockMapping is a block mapping that may still get more keys.
type blockMapping struct {
	column int
	keys   int
}

// add takes the next token and returns what is wrong with the shape so far, or
// the empty string.
func (s *shape) add(t *token.Token) string {
	if t.Type == token.CommentType {
		return ""
	}
	if s.leavesEmpty(t) {
		s.empty++
	}
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		s.flow = append(s.flow, flow{opened: t.Type})
	case token.MappingEndType, token.SequenceEndType:
		s.flow = s.flow[:max(0, len(s.flow)-1)]
	case token.SequenceEntryType:
		s.addEntry(t.Position)
	case token.MappingValueType:
		if n := len(s.flow); n > 0 {
			s.flow[n-1].colon = true
		} else if s.last != nil {
			s.addKey(s.last.Position.Column)
		}
	case token.CollectEntryType:
		if n := len(s.flow); n > 0 {
			s.flow[n-1].colon = false
		}
	}
	s.last, s.beforeLast = t, s.last
	return s.problem()
}

func (s *shape) problem() string {
	if len(s.flow) > s.depth || s.entryRun > s.depth || len(s.blocks) > s.depth {
		return fmt.Sprintf("nested more than %d levels deep", s.depth)
	}
	if n := len(s.blocks); n > 0 && s.blocks[n-1].keys > maxMappingKeys {
		return fmt.Sprintf("more than %d keys in one mapping", maxMappingKeys)
	}
	if s.empty > maxEmptyValues {
		return fmt.Sprintf("more than %d empty values", maxEmptyValues)
	}
	return ""
}

// leavesEmpty reports whether next shows that the token before it, a dash, a
// colon or a key between braces, has no value.
func (s *shape) leavesEmpty(next *token.Token) bool {
	if s.last == nil || s.beforeLast == nil {
		return false
	}
	column := next.Position.Column
	newLine := next.Position.Line > s.last.Position.Line
	switch n := len(s.flow); {
	case n > 0 && s.last.Type == token.MappingValueType:
		return isFlowEnd(next.Type)
	case n > 0:
		key := s.last.Type != token.MappingStartType && s.last.Type != token.CollectEntryType
		return isFlowEnd(next.Type) && key && s.flow[n-1] == flow{opened: token.MappingStartType}
	case s.last.Type == token.SequenceEntryType:
		return newLine && column <= s.last.Position.Column
	case s.last.Type == token.MappingValueType:
		key := s.beforeLast.Position.Column
		return newLine && (column < key || column == key && next.Type != token.SequenceEntryType)
	}
	return false
}

func isFlowEnd(t token.Type) bool {
	return t == token.CollectEntryType || t == token.MappingEndType || t == token.SequenceEndType
}

// addEntry ends the mappings inside the entry before.
func (s *shape) addEntry(at *token.Position) {
	if at.Line != s.entryLine {
		s.entryLine, s.entryRun = at.Line, 0
	}
	s.entryRun++
	s.close(at.Column)
}

// addKey counts a key in the mapping of its column.
func (s *shape) addKey(column int) {
	s.close(column)
	if n := len(s.blocks); n > 0 && s.blocks[n-1].column == column {
		s.blocks[n-1].keys++
		return
	}
	s.blocks = append(s.blocks, blockMapping{column: column, keys: 1})
}

// close drops the mappings that are indented further than column.
func (s *shape) close(column int) {
	for n := len(s.blocks); n > 0 && s.blocks[n-1].column > column; n-- {
		s.blocks = s.blocks[:n-1]
	}
}
