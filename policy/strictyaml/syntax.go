package strictyaml

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

// Kind is what differs between the kinds of files.
type Kind struct {
	// MaxBytes is the largest size of a file.
	MaxBytes int
	// TooLarge, Empty and TooDeep say what to do about a file that is too large, empty, or nested
	// too deep. If Empty is "", a file may be empty.
	TooLarge, Empty, TooDeep string
	// Foreign says that another program reads the file too, by gopkg.in/yaml.v2. Such a file is read
	// as that library reads it into fields of a type: see expand.go and foreign.go for what it may
	// have that other files may not.
	Foreign bool
	// MergedInside holds the names of fields with mappings that, when a merge key brings such a
	// field to a mapping that has it, are put together field by field. Any other field is replaced.
	MergedInside []string
}

// Read returns the root of a file, or [Errors] if the file is not YAML that the reader accepts. The
// name is used in positions only. The root of an empty file, where that is allowed, is not
// [Value.Given].
func Read(name string, src []byte, kind Kind) (Value, error) {
	f := &file{name: name, kind: kind}
	root := f.parse(src)
	if len(f.errs) > 0 {
		f.errs.within(string(src)) // the YAML library counts tabs in quotes twice
		f.errs.sort()
		return Value{}, f.errs
	}
	return Value{file: f, node: root}, nil
}

// file collects the problems of one file while it is read.
type file struct {
	name     string
	kind     Kind
	errs     Errors
	failures int // calls of fail, including those beyond MaxErrors
	remarks  Errors
}

// remark records what is valid, and read in a way that its author may not expect.
func (f *file) remark(at Position, path, problem, mend string) {
	if len(f.remarks) < MaxErrors {
		f.remarks = append(f.remarks, &Error{Pos: at, Path: path, Problem: problem, Mend: mend})
	}
}

func (f *file) fail(at Position, path, problem, mend string) {
	f.failures++
	if len(f.errs) < MaxErrors {
		f.errs = append(f.errs, &Error{Pos: at, Path: path, Problem: problem, Mend: mend})
	}
}

// failSyntax reports a problem of the file as a whole.
func (f *file) failSyntax(at *token.Token, problem, mend string) {
	f.fail(f.position(at), "", problem, mend)
}

// position returns the place of a token. For some problems the parser names no token.
func (f *file) position(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{File: f.name, Line: 1, Column: 1}
	}
	return Position{File: f.name, Line: t.Position.Line, Column: t.Position.Column}
}

// parse returns the root of the file's only YAML document.
func (f *file) parse(src []byte) ast.Node {
	// with its byte order mark, because src may be cut just beyond the bound
	if len(src) > f.kind.MaxBytes {
		f.failSyntax(nil, "the file is larger than "+size(f.kind.MaxBytes), f.kind.TooLarge)
		return nil
	}
	text := string(bytes.TrimPrefix(src, []byte("\ufeff")))
	f.checkText(text)
	if len(f.errs) > 0 {
		return nil
	}
	// The lexer counts a carriage return inside quotes as a line of its own.
	tokens := lexer.Tokenize(strings.ReplaceAll(text, "\r", ""))
	end := firstDocument(tokens)
	f.checkTokens(tokens[:end])
	if len(f.errs) > 0 {
		return nil
	}
	tree, err := parseTokens(tokens[:end])
	if err != nil {
		f.failParser(err)
		return nil
	}
	if end < len(tokens) {
		f.tellSecond(tokens[end])
	}
	root := f.body(tree)
	if root != nil && f.kind.Foreign {
		root = f.expand(root)
	}
	return root
}

// checkText checks what must be right before the text can be cut into tokens.
func (f *file) checkText(text string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if column, r, bad := badCharacter(line); bad {
			f.fail(Position{f.name, number, column}, "",
				fmt.Sprintf("character %U is not allowed in a text file", r),
				"save the file as plain UTF-8 text")
			return // a file in another encoding has one on every line
		}
		if column, bad := badTab(line); bad {
			f.fail(Position{f.name, number, column}, "", "found a tab",
				"use spaces: YAML does not allow tabs here")
		}
	}
}

func size(bytes int) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// badCharacter finds a character that must not stand in a UTF-8 YAML file.
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

// badTab finds a tab that indents or separates. Inside quotes, in comments and at the end of a
// line a tab does no harm.
func badTab(line string) (column int, bad bool) {
	before, after, found := strings.Cut(line, "\t")
	after = strings.TrimSpace(after)
	if !found || strings.ContainsAny(before, `#"'`) || after == "" || after[0] == '#' {
		return 0, false
	}
	return utf8.RuneCountInString(before) + 1, true
}

const (
	mendShared = "write the value out where it is needed"
	mendMerged = "write the fields out where they are needed"
)

// refused lists the parts of YAML that the reader refuses. Aliases and merge keys can make a small
// file large, tags and directives change what a value means, and none of them makes a file easier
// to read.
var refused = map[token.Type]struct{ problem, mend string }{
	token.AnchorType:     {"anchors (&name) are not allowed", mendShared},
	token.AliasType:      {"aliases (*name) are not allowed", mendShared},
	token.MergeKeyType:   {"merge keys (<<) are not allowed", mendMerged},
	token.TagType:        {"tags (!name) are not allowed", "remove the tag"},
	token.DirectiveType:  {"directives (%NAME) are not allowed", "remove the line"},
	token.MappingKeyType: {"explicit keys (?) are not allowed", "write it as name: value"},
	token.LiteralType:    {"block text (|) is not allowed", "write the value on one line"},
	token.FoldedType:     {"block text (>) is not allowed", "write the value on one line"},
}

// checkTokens refuses the parts of YAML in refused, and shapes that would make the parser slow or
// exhaust its stack.
func (f *file) checkTokens(tokens token.Tokens) {
	s := shape{depth: maxDepth}
	if f.kind.Foreign {
		s.depth = foreignDepth
	}
	for i, t := range tokens {
		if r, ok := refused[t.Type]; ok && !(f.kind.Foreign && expanded[t.Type]) {
			f.failSyntax(t, r.problem, r.mend)
		}
		if t.Type == token.MappingValueType && f.kind.Foreign {
			f.checkName(tokens[:i])
		}
		if problem := s.add(t); problem != "" {
			f.failSyntax(t, problem, f.kind.TooDeep)
			return
		}
	}
}

// parseTokens runs the YAML parser. The parser is not ours, and it runs inside a serving node on
// every change of a file. So a panic in it only refuses the file and does not end the process.
func parseTokens(tokens token.Tokens) (tree *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			tree, err = nil, fmt.Errorf("the YAML parser failed: %v", r)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// failParser reports an error of the YAML parser in our own form.
func (f *file) failParser(err error) {
	var positioned interface {
		GetMessage() string
		GetToken() *token.Token
	}
	var at *token.Token
	message := err.Error()
	if errors.As(err, &positioned) {
		at, message = positioned.GetToken(), positioned.GetMessage()
	}
	f.failSyntax(at, "not valid YAML: "+strings.Join(strings.Fields(message), " "),
		"check indentation, quotes and brackets on this line and its neighbours")
}

// firstDocument returns the number of tokens that belong to the first document.
func firstDocument(tokens token.Tokens) int {
	begun, ended := false, false
	for i, t := range tokens {
		switch t.Type {
		case token.CommentType:
			continue
		case token.DocumentEndType:
			ended = begun
			continue
		case token.DocumentHeaderType:
			ended = ended || begun
		}
		if ended {
			return i
		}
		begun = true
	}
	return len(tokens)
}

// tellSecond says that there is a document behind the first one.
func (f *file) tellSecond(at *token.Token) {
	const problem = "a second document starts here"
	if f.kind.Foreign {
		f.remark(f.position(at), "", problem+", and only the first one of a file is read",
			"give it a file of its own")
		return
	}
	f.failSyntax(at, problem,
		"keep one document in a file and remove the others with their --- lines")
}

// body returns the root of the first document.
func (f *file) body(tree *ast.File) ast.Node {
	if len(tree.Docs) > 0 && tree.Docs[0].Body != nil {
		return tree.Docs[0].Body
	}
	if f.kind.Empty != "" {
		f.failSyntax(nil, "the file is empty", f.kind.Empty)
	}
	return nil
}

// startOf returns the first token of a node. Some nodes name a later one: a block mapping names
// its first colon.
func startOf(node ast.Node) *token.Token {
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	return node.GetToken()
}
