package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Position is a place in a file. Line and Column count from 1, the column in characters.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns "file:line:column", which editors and terminals can follow.
func (p Position) String() string {
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Compare orders places in one file from its beginning to its end.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Error is one problem of a file.
type Error struct {
	Pos Position
	// Path names the field, as in "limits[0].window". It is empty when the problem is one of the
	// file as a whole.
	Path string
	// Problem says what is wrong.
	Problem string
	// Mend says what to write instead.
	Mend string
}

// Error returns the problem on one line, as in
//
//	limits.yaml:12:14: limits[0].window: "1 m" is not a duration; write it like 500ms, 10s, 1m
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %s; %s", e.Pos, e.Problem, e.Mend)
	}
	return fmt.Sprintf("%s: %s: %s; %s", e.Pos, e.Path, e.Problem, e.Mend)
}

// MaxErrors is the largest number of problems reported for one file. Nobody reads more, and a
// megabyte of nonsense can have a problem at every second byte.
const MaxErrors = 500

// Errors holds the problems found in one file, in the order of their positions: all of them, or
// the first MaxErrors that were found. It is never empty when returned as an error.
type Errors []*Error

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

// sort orders the problems from the beginning of the file to its end.
func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b *Error) int { return a.Pos.Compare(b.Pos) })
}

// within moves columns that lie beyond their line to its end.
func (e Errors) within(src string) {
	lines := strings.Split(src, "\n")
	for _, problem := range e {
		if n := problem.Pos.Line; n >= 1 && n <= len(lines) {
			longest := utf8.RuneCountInString(lines[n-1]) + 1
			problem.Pos.Column = min(problem.Pos.Column, longest)
		}
	}
}
