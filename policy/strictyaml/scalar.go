package strictyaml

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Text reads a string. It refuses numbers and words that YAML gives another type: 010 and 8 would
// be one number and two strings.
func (v Value) Text(mend string) (string, bool) {
	if s, ok := v.IsText(); ok {
		return s, true
	}
	if scalar, ok := plainScalar(v.node); ok {
		v.Fail(InWords(scalar)+" is not text in YAML",
			fmt.Sprintf("put it in quotes: %q", truncate(scalar)))
		return "", false
	}
	v.Fail(v.Describe()+" stands where text is expected", mend)
	return "", false
}

// IsText returns a string. It reports nothing if the value is not a string.
func (v Value) IsText() (string, bool) {
	if s, ok := v.node.(*ast.StringNode); ok {
		return s.Value, true
	}
	return "", false
}

// Plain reads one value as it is written, with or without quotes: the field, not YAML, decides what
// a number or a word means. A null is not a value.
func (v Value) Plain(mend string) (string, bool) {
	if s, ok := v.IsText(); ok {
		return s, true
	}
	text, ok := plainScalar(v.node)
	if _, null := v.node.(*ast.NullNode); null || !ok {
		v.Fail(v.Describe()+" stands where a plain value is expected", mend)
		return "", false
	}
	return text, true
}

// Number returns the text of an unquoted word, which may be a number.
func (v Value) Number(mend string) (string, bool) {
	text, ok := plainScalar(v.node)
	if _, isText := v.IsText(); isText && !ok {
		v.Fail(v.Describe()+" in quotes is text", mend+", without quotes")
		return "", false
	}
	if !ok {
		v.Fail(v.Describe()+" stands where a number is expected", mend)
	}
	return text, ok
}

var plainDigits = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

func plainInteger(text string) (int64, error) {
	if !plainDigits.MatchString(text) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

// Integer reads a whole number in plain digits; it returns 0 if it refuses the value.
func (v Value) Integer(lowest, highest int64) int64 {
	mend := fmt.Sprintf("write a whole number from %d to %d", lowest, highest)
	text, ok := v.Number(mend)
	if !ok {
		return 0
	}
	parse := plainInteger
	if v.file.kind.Foreign {
		parse = foreignInteger
	}
	n, err := parse(text)
	if errors.Is(err, strconv.ErrSyntax) {
		v.Fail(InWords(text)+" is not a whole number in plain digits", mend)
		return 0
	}
	if err != nil || n < lowest || n > highest {
		v.Fail(InWords(text)+" is out of range", mend)
		return 0
	}
	return n
}

// Whole returns a reader of a whole number, as [Value.Integer].
func Whole[N ~int | ~int64](lowest, highest int64) func(Value) N {
	return func(v Value) N { return N(v.Integer(lowest, highest)) }
}

// Duration reads a duration as Go writes it; it returns 0 if it refuses the value.
func (v Value) Duration(lowest, highest time.Duration) time.Duration {
	mend := fmt.Sprintf("write a duration like 500ms or 10s, from %s to %s", lowest, highest)
	text, ok := v.Plain(mend)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		v.Fail(v.Describe()+" is not a duration", mend)
		return 0
	}
	if d < lowest || d > highest {
		v.Fail(v.Describe()+" is out of range", mend)
		return 0
	}
	return d
}

// Bool reads true or false.
func (v Value) Bool() bool {
	words := plainBools // YAML also allows True and TRUE, we do not
	if v.file.kind.Foreign {
		words = foreignBools
	}
	text, plain := plainScalar(v.node)
	if b, known := words[text]; known && plain {
		return b
	}
	v.Fail(v.Describe()+" is neither true nor false", "write true or false")
	return false
}

var plainBools = map[string]bool{"true": true, "false": false}

// OneOf reads one of the given words; it returns an empty one if it refuses the value.
func OneOf[W ~string](v Value, words ...W) W {
	known := make([]string, len(words))
	for i, w := range words {
		known[i] = string(w)
	}
	text, ok := v.IsText()
	if !ok {
		v.Fail(v.Describe()+" is not known here", "use one of "+strings.Join(known, ", "))
		return ""
	}
	if !slices.Contains(known, text) {
		v.Fail(v.Describe()+" is not known here", DidYouMean(text, known))
		return ""
	}
	return W(text)
}

// Word returns a reader of one of the given words, as [OneOf].
func Word[W ~string](words ...W) func(Value) W {
	return func(v Value) W { return OneOf(v, words...) }
}

// plainScalar returns the text of an unquoted number, word or null.
func plainScalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, n.Token.Type == token.StringType
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		return n.Token.Value, n.Token.Type == token.NullType
	}
	return "", false
}

// Describe names the value in words for an error.
func (v Value) Describe() string {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return strconv.Quote(truncate(n.Value))
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	if text, ok := plainScalar(v.node); ok {
		return InWords(text)
	}
	return "an empty value"
}

// InWords returns unquoted text for an error: as it was written if it is readable on one line,
// otherwise quoted.
func InWords(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(truncate(text))
	}
	return truncate(text)
}

// truncate keeps errors short whatever the file holds.
func truncate(text string) string {
	const most = 40
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}
