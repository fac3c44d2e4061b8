package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Position is a place in a limits document. Line and Column count from 1, the
// column in characters.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns "file:line:column", which editors and terminals can follow.
func (p Position) String() string {
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// compare orders the places of one file as its reader meets them.
func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Error is one problem of a limits document.
type Error struct {
	Pos Position
	// Path names the field, as in "limits[0].window". It is empty when the
	// problem is one of the file as a whole.
	Path string
	// Problem says what is wrong.
	Problem string
	// Mend says what to write instead.
	Mend string
}

// Error returns the problem on one line, as in
//
//	limits.yaml:12:14: limits[0].window: "1 m" is not a duration; write it like 500ms, 10s, 1m, 1h or 24h
func (e *Error) Error() string { return onOneLine(e.Pos, e.Path, e.Problem, e.Mend) }

func onOneLine(pos Position, path, text, mend string) string {
	var b strings.Builder
	b.WriteString(pos.String())
	b.WriteString(": ")
	if path != "" {
		b.WriteString(path)
		b.WriteString(": ")
	}
	b.WriteString(text)
	b.WriteString("; ")
	b.WriteString(mend)
	return b.String()
}

// maxErrors bounds the report on one document. Nobody reads more, and a megabyte
// of nonsense has a problem every second byte.
const maxErrors = 500

// Errors holds the problems found in one document, in the order of their
// positions: all of them, or some 500 if there are more. It is never empty when
// returned as an error.
type Errors []*Error

// add appends a problem, up to maxErrors.
func (e *Errors) add(one *Error) {
	if len(*e) < maxErrors {
		*e = append(*e, one)
	}
}

// Error returns the problems, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}

// sort puts the problems in the order in which a reader of the file meets them.
func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b *Error) int { return a.Pos.compare(b.Pos) })
}

// within moves columns that lie beyond their line to its end.
func (e Errors) within(src string) {
	lines := strings.Split(src, "\n")
	for _, problem := range e {
		if n := problem.Pos.Line; n >= 1 && n <= len(lines) {
			problem.Pos.Column = min(problem.Pos.Column, utf8.RuneCountInString(lines[n-1])+1)
		}
	}
}
