package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// field is a value of the document with the way to it. Its methods read the
// value as one type and report what is wrong with it if it is none.
type field struct {
	d    *decoder
	node ast.Node
	path string
	// before is the key or the dash in front of the value, if there is one.
	before *token.Token
}

// entry is one key of a mapping with its value.
type entry struct {
	name  string
	key   ast.Node
	value field
}

// object is a mapping with a fixed set of fields.
type object struct {
	field
	fields map[string]field
	// mistyped holds fields that are missing because another was probably meant
	// to be them. One report is enough for both.
	mistyped map[string]bool
}

func (f field) fail(problem, mend string) { f.d.fail(f.start(), f.path, problem, mend) }

// start returns where to point a reader to: the value or, if it is left empty,
// what stands in front of the empty place.
func (f field) start() *token.Token {
	t := startOf(f.node)
	if t.Type == token.ImplicitNullType && f.before != nil {
		return f.before
	}
	return t
}

// child returns the way to a part of f.
func (f field) child(name string) string {
	if len(name) > MaxNameBytes || !plainName.MatchString(name) {
		name = strconv.Quote(truncate(name))
	}
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// mapping reads names with values. Later duplicates of a name are reported and
// left out; ok is false only if there is no mapping at all.
func (f field) mapping(mend string) (entries []entry, ok bool) {
	m, ok := f.node.(*ast.MappingNode)
	if !ok {
		f.fail(describe(f.node)+" stands where a mapping is expected", mend)
		return nil, false
	}
	first := make(map[string]*token.Position, len(m.Values))
	for _, kv := range m.Values {
		key := field{d: f.d, node: kv.Key, path: f.path}
		name, ok := key.text("write a name before the colon")
		if !ok {
			continue
		}
		key.path = f.child(name)
		if at, twice := first[name]; twice {
			key.fail(fmt.Sprintf("given twice, first at %s", f.d.position(at)), "keep one of the two")
			continue
		}
		first[name] = kv.Key.GetToken().Position
		entries = append(entries, entry{name, kv.Key, field{f.d, kv.Value, key.path, kv.Key.GetToken()}})
	}
	return entries, true
}

// object reads a mapping that may have the known fields and no others.
func (f field) object(mend string, known []string) (object, bool) {
	entries, ok := f.mapping(mend)
	if !ok {
		return object{}, false
	}
	o := object{field: f, fields: make(map[string]field, len(entries)), mistyped: make(map[string]bool)}
	for _, e := range entries {
		if slices.Contains(known, e.name) {
			o.fields[e.name] = e.value
			continue
		}
		f.d.fail(e.key.GetToken(), e.value.path, "no such field", didYouMean(e.name, known))
		if meant, ok := suggest(e.name, known); ok {
			o.mistyped[meant] = true
		}
	}
	return o, true
}

// required returns a field that must be there.
func (o object) required(name, mend string) (field, bool) {
	f, ok := o.fields[name]
	if !ok && !o.mistyped[name] {
		o.d.fail(o.start(), o.child(name), "missing", mend)
	}
	return f, ok
}

// list reads a sequence.
func (f field) list(mend string) ([]field, bool) {
	s, ok := f.node.(*ast.SequenceNode)
	if !ok {
		f.fail(describe(f.node)+" stands where a list is expected", mend)
		return nil, false
	}
	items := make([]field, len(s.Values))
	for i, node := range s.Values {
		items[i] = field{f.d, node, fmt.Sprintf("%s[%d]", f.path, i), s.Entries[i].Start}
	}
	return items, true
}

// text reads a string. Numbers and words that YAML gives another type are not
// taken for strings: 010 and 8 would be one number and two strings.
func (f field) text(mend string) (string, bool) {
	if s, ok := f.node.(*ast.StringNode); ok {
		return s.Value, true
	}
	if scalar, ok := plainScalar(f.node); ok {
		f.fail(inWords(scalar)+" is not text in YAML", fmt.Sprintf("put it in quotes: %q", truncate(scalar)))
		return "", false
	}
	f.fail(describe(f.node)+" stands where text is expected", mend)
	return "", false
}

// charset is a set of names and the words for it.
type charset struct {
	form *regexp.Regexp
	mend string
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

	regionNames = charset{regexp.MustCompile(`^[a-z0-9-]+$`),
		"use lower-case letters, digits and '-', at most 63 bytes"}
	limitNames = charset{regexp.MustCompile(`^[a-z0-9._-]+$`),
		"use lower-case letters, digits, '.', '_' and '-', at most 63 bytes"}
	descriptorNames = charset{regexp.MustCompile(`^[A-Za-z0-9._-]+$`),
		"use letters, digits, '.', '_' and '-', at most 63 bytes"}
)

func (c charset) holds(name string) bool {
	return len(name) <= MaxNameBytes && c.form.MatchString(name)
}

// name reads a string of a charset.
func (f field) name(c charset) (string, bool) {
	name, ok := f.text(c.mend)
	if !ok {
		return "", false
	}
	return name, f.checkName(name, c)
}

func (f field) checkName(name string, c charset) bool {
	if c.holds(name) {
		return true
	}
	if len(name) > MaxNameBytes {
		f.fail(fmt.Sprintf("%q is %d bytes long", truncate(name), len(name)), c.mend)
		return false
	}
	f.fail(fmt.Sprintf("%q is not a valid name", name), c.mend)
	return false
}

// number returns the text of something that may be a number: an unquoted word.
func (f field) number(mend string) (string, bool) {
	text, ok := plainScalar(f.node)
	if _, isText := f.node.(*ast.StringNode); isText && !ok {
		f.fail(describe(f.node)+" in quotes is text", mend+", without quotes")
		return "", false
	}
	if !ok {
		f.fail(describe(f.node)+" stands where a number is expected", mend)
	}
	return text, ok
}

// integer reads a whole number in plain digits.
func (f field) integer(lowest, highest int64) (int64, bool) {
	mend := fmt.Sprintf("write a whole number from %d to %d", lowest, highest)
	text, ok := f.number(mend)
	if !ok {
		return 0, false
	}
	if !isInteger(text) {
		f.fail(inWords(text)+" is not a whole number in plain digits", mend)
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64) // fails on overflow only
	if err != nil || n < lowest || n > highest {
		f.fail(inWords(text)+" is out of range", mend)
		return 0, false
	}
	return n, true
}

// fraction reads a decimal number from 0 to highest.
func (f field) fraction(highest PPM) (PPM, bool) {
	mend := fmt.Sprintf("write a number from 0 to %s with at most 6 decimals, such as 0.5", highest)
	text, ok := f.number(mend)
	if !ok {
		return 0, false
	}
	p, ok := parsePPM(text)
	if !ok {
		f.fail(inWords(text)+" is not a fraction", mend)
		return 0, false
	}
	if p > highest {
		f.fail(inWords(text)+" is out of range", mend)
		return 0, false
	}
	return p, true
}

// window reads a duration in the range of windows.
func (f field) window() (time.Duration, bool) {
	window, ok := time.Duration(0), false
	if s, isText := f.node.(*ast.StringNode); isText {
		window, ok = parseWindow(s.Value)
	}
	if !ok {
		f.fail(describe(f.node)+" is not a duration", "write it like 500ms, 10s, 1m, 1h or 24h")
		return 0, false
	}
	if window < MinWindow || window > MaxWindow {
		f.fail(describe(f.node)+" is out of range", "write a duration from 10ms to 366d")
		return 0, false
	}
	if window%time.Microsecond != 0 {
		f.fail(describe(f.node)+" is not a whole number of microseconds", "round it, for the store's clock counts microseconds")
		return 0, false
	}
	return window, true
}

// boolean reads true or false.
func (f field) boolean() (value, ok bool) {
	if b, isBool := f.node.(*ast.BoolNode); isBool {
		switch b.Token.Value { // YAML also allows True and TRUE, we do not
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	f.fail(describe(f.node)+" is neither true nor false", "write true or false")
	return false, false
}

// oneOf reads one of a few words.
func oneOf[W ~string](f field, words ...W) (W, bool) {
	known := make([]string, len(words))
	for i, w := range words {
		known[i] = string(w)
	}
	s, ok := f.node.(*ast.StringNode)
	if !ok {
		f.fail(describe(f.node)+" is not known here", "use one of "+strings.Join(known, ", "))
		return "", false
	}
	if !slices.Contains(known, s.Value) {
		f.fail(describe(f.node)+" is not known here", didYouMean(s.Value, known))
		return "", false
	}
	return W(s.Value), true
}
