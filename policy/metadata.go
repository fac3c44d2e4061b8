package policy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/quotad/quotad/policy/strictyaml"
)

// The bounds of a limit's metadata, which each answer to Envoy may have of several limits.
const (
	MaxMetadataBytes  = 4096 // of its text
	MaxMetadataDepth  = 8    // mappings and lists inside one another
	MaxMetadataValues = 256  // of all of them together
)

// Metadata is what Envoy is told of a limit by which a descriptor passes, for its logs, routes and
// other filters: a mapping with at least one name. It never changes, so any number of goroutines may
// use it. A nil one has neither text nor fields.
type Metadata struct {
	text   string
	fields map[string]any
}

// String returns the metadata as JSON with sorted names. Two that mean the same have one text, which is
// also what a document can have.
func (m *Metadata) String() string {
	if m == nil {
		return ""
	}
	return m.text
}

// Fields returns the values by their names, as [strictyaml.Value.Tree] reads them. The caller must not
// modify them.
func (m *Metadata) Fields() map[string]any {
	if m == nil {
		return nil
	}
	return m.fields
}

// MetadataDomains returns the domains with limits or exemptions that have metadata; nil if there are
// none.
func (d *Document) MetadataDomains() (all map[string]bool) {
	add := func(domain string, m *Metadata) {
		if m == nil {
			return
		}
		if all == nil {
			all = map[string]bool{}
		}
		all[domain] = true
	}
	for i := range d.Limits {
		add(d.Limits[i].Domain, d.Limits[i].Metadata)
	}
	for i := range d.Exempt {
		add(d.Exempt[i].Domain, d.Exempt[i].Metadata)
	}
	return all
}

const mendMetadata = "write a mapping of names to values, such as {tier: gold}"

// ReadMetadata reads metadata. It returns nil for an empty mapping, and for what it refuses.
func ReadMetadata(f strictyaml.Value) *Metadata {
	before := f.Failures()
	fields := f.Tree(mendMetadata, strictyaml.TreeBounds{Depth: MaxMetadataDepth, Values: MaxMetadataValues})
	if len(fields) == 0 || f.Failures() > before {
		return nil
	}
	text := appendJSON(nil, fields)
	if len(text) > MaxMetadataBytes {
		f.Fail(fmt.Sprintf("as JSON it is %d bytes long", len(text)),
			fmt.Sprintf("write at most %d bytes", MaxMetadataBytes))
		return nil
	}
	return &Metadata{string(text), fields}
}

// readMetadata reads metadata that must not be empty.
func readMetadata(f strictyaml.Value) *Metadata {
	before := f.Failures()
	m := ReadMetadata(f)
	if m == nil && f.Failures() == before {
		f.Fail("empty", mendMetadata+", or remove it")
	}
	return m
}

// appendJSON appends a tree as JSON. It is part of the epoch, so it must not depend on how some
// version of the standard library writes JSON.
func appendJSON(b []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendJSONText(b, name)
			b = append(b, ": "...)
			b = appendJSON(b, v[name])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case string:
		return appendJSONText(b, v)
	case float64:
		return appendJSONNumber(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

// appendJSONNumber appends the shortest text of a number.
func appendJSONNumber(b []byte, n float64) []byte {
	form := byte('f')
	if size := math.Abs(n); size >= 1e18 || size > 0 && size < 1e-6 {
		form = 'e'
	}
	return strconv.AppendFloat(b, n, form, -1, 64)
}

// appendJSONText appends text in quotes. What no file may have, or YAML takes for the end of a line, is
// written as its number.
func appendJSONText(b []byte, text string) []byte {
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029', r == '\ufeff':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
