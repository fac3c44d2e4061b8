package policy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	mendFile    = "write version, regions and limits"
	mendTabs    = "use spaces: YAML does not allow tabs here"
	mendNesting = "the document needs only version, regions and limits, each entry of limits one mapping"
)

// syntax turns the bytes of a file into one YAML tree free of everything that
// the language does without: aliases, tags, directives, further documents.
type syntax struct {
	file string
	errs Errors
}

// parseYAML returns the root of the file's only document, or what is wrong with
// the file as YAML.
func parseYAML(file string, src []byte) (ast.Node, Errors) {
	s := &syntax{file: file}
	text := string(bytes.TrimPrefix(src, []byte("\ufeff")))
	s.checkText(text)
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	// The lexer counts a carriage return inside quotes as a line of its own.
	tokens := lexer.Tokenize(strings.ReplaceAll(text, "\r", ""))
	s.checkTokens(tokens)
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	tree, err := parseTokens(tokens)
	if err != nil {
		s.failSyntax(err)
		return nil, s.errs
	}
	return s.onlyDocument(tree), s.errs
}

func (s *syntax) fail(line, column int, problem, mend string) {
	s.errs.add(&Error{
		Pos:     Position{File: s.file, Line: line, Column: column},
		Problem: problem,
		Mend:    mend,
	})
}

func (s *syntax) failAt(t *token.Token, problem, mend string) {
	if t == nil || t.Position == nil {
		s.fail(1, 1, problem, mend)
		return
	}
	s.fail(t.Position.Line, t.Position.Column, problem, mend)
}

// checkText looks at what must be right before the text can be cut into tokens.
func (s *syntax) checkText(text string) {
	if len(text) > MaxDocumentBytes {
		s.fail(1, 1, "the file is larger than 1 MiB", "remove what is not a limit, or serve fewer limits from one file")
		return
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if column, r, bad := badCharacter(line); bad {
			s.fail(number, column, fmt.Sprintf("character %U is not allowed in a text file", r), "save the file as plain UTF-8 text")
			return // a file in another encoding has one on every line
		}
		if column, bad := badTab(line); bad {
			s.fail(number, column, "found a tab", mendTabs)
		}
	}
}

// badCharacter finds what cannot stand in a UTF-8 YAML file.
func badCharacter(line string) (column int, r rune, bad bool) {
	for i, r := range line {
		column++
		invalid := r == utf8.RuneError && !strings.HasPrefix(line[i:], string(utf8.RuneError))
		// A carriage return alone ends a line for YAML but not for most tools.
		lineEnd := r == '\n' || (r == '\r' && (line[i:] == "\r\n" || line[i:] == "\r"))
		control := (r < ' ' && r != '\t' && !lineEnd) || r == 0x7f
		if invalid || control {
			return column, r, true
		}
	}
	return 0, 0, false
}

// badTab finds a tab that indents or separates. Inside quotes, in comments and
// at the end of a line a tab does no harm.
func badTab(line string) (column int, bad bool) {
	before, after, found := strings.Cut(line, "\t")
	after = strings.TrimSpace(after)
	if !found || strings.ContainsAny(before, `#"'`) || after == "" || after[0] == '#' {
		return 0, false
	}
	return utf8.RuneCountInString(before) + 1, true
}

// refused lists the parts of YAML that a limits document does without. Aliases
// and merge keys are how a small file becomes a large one, tags and directives
// change what a value means, and none of them makes a limit easier to read.
var refused = map[token.Type]struct{ problem, mend string }{
	token.AnchorType:     {"anchors (&name) are not allowed", "write the value out where it is needed"},
	token.AliasType:      {"aliases (*name) are not allowed", "write the value out where it is needed"},
	token.MergeKeyType:   {"merge keys (<<) are not allowed", "write the fields out where they are needed"},
	token.TagType:        {"tags (!name) are not allowed", "remove the tag"},
	token.DirectiveType:  {"directives (%NAME) are not allowed", "remove the line"},
	token.MappingKeyType: {"explicit keys (?) are not allowed", "write it as name: value"},
	token.LiteralType:    {"block text (|) is not allowed", "write the value on one line"},
	token.FoldedType:     {"block text (>) is not allowed", "write the value on one line"},
}

// checkTokens refuses what the language does without, and shapes that would
// make the parser slow or exhaust its stack.
func (s *syntax) checkTokens(tokens token.Tokens) {
	var sh shape
	for _, t := range tokens {
		if r, ok := refused[t.Type]; ok {
			s.failAt(t, r.problem, r.mend)
		}
		if problem := sh.add(t); problem != "" {
			s.failAt(t, problem, mendNesting)
			return
		}
	}
}

// parseTokens runs the YAML parser. The parser is not ours and runs inside a
// serving node on every change of the file, so a panic of it is a refused
// document and not the end of the process.
func parseTokens(tokens token.Tokens) (tree *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			tree, err = nil, fmt.Errorf("the YAML parser failed: %v", r)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// failSyntax reports an error of the YAML parser in our own form.
func (s *syntax) failSyntax(err error) {
	const mend = "check indentation, quotes and brackets on this line and its neighbours"
	var positioned interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &positioned) {
		s.failAt(positioned.GetToken(), "not valid YAML: "+oneLine(positioned.GetMessage()), mend)
		return
	}
	s.fail(1, 1, "not valid YAML: "+oneLine(err.Error()), mend)
}

// oneLine keeps the parser's message on the line of the error.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }

// onlyDocument returns the body of the file's one document.
func (s *syntax) onlyDocument(tree *ast.File) ast.Node {
	if len(tree.Docs) > 1 {
		second := tree.Docs[1]
		at := second.Start
		if at == nil && second.Body != nil {
			at = startOf(second.Body)
		}
		s.failAt(at, "a second document starts here", "keep one document in a file and remove the others with their --- lines")
		return nil
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		s.fail(1, 1, "the file is empty", mendFile)
		return nil
	}
	return tree.Docs[0].Body
}

// startOf returns the first token of a node. Some nodes name a later one: a
// block mapping names its first colon.
func startOf(node ast.Node) *token.Token {
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	return node.GetToken()
}
