package policy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// metadataDocument returns a document with a limit of which the metadata has these fields, as they
// stand between braces.
func metadataDocument(fields string) string {
	return `version: 1
regions: {us-east: {weight: 1}}
limits:
  - name: a
    domain: d
    key: [k]
    algorithm: fixed_window
    limit: 100
    window: 1m
    metadata: {` + fields + `}
`
}

// readOf returns the metadata of a document, which must be valid.
func readOf(t interface{ Fatalf(string, ...any) }, fields string) (*Metadata, *Document) {
	d, err := Parse("limits.yaml", []byte(metadataDocument(fields)))
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return d.Limits[0].Metadata, d
}

// checkMetadata checks what a Metadata promises.
func checkMetadata(t *testing.T, m *Metadata) {
	t.Helper()
	if m == nil {
		return
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(m.String()), &fields); err != nil || !reflect.DeepEqual(fields, m.Fields()) {
		t.Errorf("%s is read as %v, %v; want %v", m, fields, err, m.Fields())
	}
	if len(fields) == 0 || len(m.String()) > MaxMetadataBytes || !utf8.ValidString(m.String()) {
		t.Errorf("%q has %d fields and %d bytes", m, len(fields), len(m.String()))
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(m.String(), "{"), "}")
	if again, _ := readOf(t, inner); again.String() != m.String() {
		t.Errorf("%q is read as %q", m, again)
	}
}

// TestMetadataIsCanonical: what means the same has one text and one epoch.
func TestMetadataIsCanonical(t *testing.T) {
	for want, same := range map[string][]string{
		`{"a": "x", "b": 1}`:          {`a: x, b: 1`, `b: 1.0, a: "x"`, `"b": 1e0, 'a': x`, "\n      b: 10e-1,\n      a: x"},
		`{"a": null}`:                 {`a: null`, `a: ~`, `a:`},
		`{"a": [true, false, 0]}`:     {`a: [true, false, 0]`, `a: [true, false, -0.0]`},
		`{"a": 1e+20, "b": 1e-07}`:    {`a: 100000000000000000000, b: 0.0000001`, `a: 1E20, b: 1e-7`},
		`{"a": 9007199254740992}`:     {`a: 9007199254740993`},
		`{"a": "1", "yes": "no"}`:     {`a: "1", "yes": 'no'`},
		`{"a": {"b": {}}, "c": []}`:   {`c: [], a: {b: {}}`},
		`{"a": "\u0085\u2028\u000a"}`: {`a: "\u0085\u2028\n"`, `a: "\x85\u2028\x0a"`},
		`{"a": "1.2.3.4 2024-01-01"}`: {`a: 1.2.3.4 2024-01-01`},
	} {
		_, first := readOf(t, same[0])
		for _, fields := range same {
			if m, d := readOf(t, fields); m.String() != want || d.Epoch() != first.Epoch() {
				t.Errorf("%s: %s, want %s, epoch %s", fields, m, want, d.Epoch())
			}
		}
	}
	_, one := readOf(t, "a: 1")
	_, two := readOf(t, `a: "1"`)
	none, err := Parse("limits.yaml", []byte(strings.ReplaceAll(metadataDocument(""), "    metadata: {}\n", "")))
	suite.Must(t, err)
	if one.Epoch() == two.Epoch() || one.Epoch() == none.Epoch() {
		t.Error("different metadata has one epoch")
	}
}

// TestMetadataIsReadAsItWasWritten: of any tree the text is one that reads as the tree.
func TestMetadataIsReadAsItWasWritten(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		fields := drawMapping(t, 1)
		fields["always"] = true
		text := string(appendJSON(nil, fields))
		inner := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
		m, _ := readOf(t, inner)
		if !reflect.DeepEqual(m.Fields(), fields) || m.String() != text {
			t.Fatalf("%s is read as %s", text, m)
		}
	})
}

func drawMapping(t *rapid.T, depth int) map[string]any {
	all := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		all[rapid.StringN(0, 8, 24).Draw(t, "name")] = drawValue(t, depth)
	}
	return all
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 4
	if depth < 4 {
		kinds = 6
	}
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 1:
		return rapid.StringN(0, 12, 48).Draw(t, "text")
	case 2:
		n := rapid.Float64().Draw(t, "number")
		if n == 0 {
			return 0.0
		}
		return n
	case 3:
		return rapid.Bool().Draw(t, "bool")
	case 4:
		return nil
	case 5:
		all := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			all = append(all, drawValue(t, depth+1))
		}
		return all
	}
	return drawMapping(t, depth+1)
}
