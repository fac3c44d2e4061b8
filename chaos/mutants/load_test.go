//go:build !race

package mutants

import (
	"reflect"
	"strings"
	"testing"
)

const sample = `What is here.

-- one --
hole: a
rule: b: c
breaks: d
under: e
says: f
flags: --wider --limits 1
within: 500
-- old a.go --
	if x {
		y()

	}
-- new --

-- two --
hole: a
rule: b
breaks: d
under: e
says: f
test: ./algorithms TestLuaEqualsTwin
-- old a.lua --
x
-- new --
y
-- old b.lua --
x
-- new --
`

// TestParse: texts keep how far they are indented and their lines, but for empty ones at the end.
func TestParse(t *testing.T) {
	want := []Mutant{
		{Name: "one", Hole: "a", Rule: "b: c", Breaks: "d", Under: "e", Says: "f",
			Flags: []string{"--wider", "--limits", "1"}, Within: 500,
			Edits: []Edit{{"a.go", "\tif x {\n\t\ty()\n\n\t}", ""}}},
		{Name: "two", Hole: "a", Rule: "b", Breaks: "d", Under: "e", Says: "f",
			Test:  Test{"./algorithms", "TestLuaEqualsTwin"},
			Edits: []Edit{{"a.lua", "x", "y"}, {"b.lua", "x", ""}}},
	}
	if got, err := parse("a.txtar", []byte(sample)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, got %+v", err, got)
	}
}

// TestParseErrors: an error names file, line, mutant and field.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"hole: a", "hall: a", `a.txtar:4: mutant one: no field is called "hall"`},
		{"rule: b: c", "rule:", "a.txtar:5: mutant one: no field"},
		{"rule: b: c", "", "a.txtar:5: mutant one: no field"},
		{"rule: b: c\n", "", "a.txtar:3: mutant one: rule is missing"},
		{"rule: b: c", "hole: b", "a.txtar:5: mutant one: hole is given twice"},
		{"within: 500", "within: soon", "a.txtar:10: mutant one: within: "},
		{"within: 500", "within: 0", "a.txtar:10: mutant one: within: no seed is run"},
		{"within: 500\n", "", "a.txtar:3: mutant one: give one of within and test"},
		{"test: ./algorithms T", "within: 5\ntest: ./algorithms T", "a.txtar:18: mutant two: give one of within and test"},
		{"./algorithms Test", "Test", "a.txtar:24: mutant two: test: write the package"},
		{"-- old a.go --", "-- old --", "a.txtar:11: write -- old FILE --"},
		{"-- one --", "-- old b.go --", "a.txtar:3: write -- old FILE --"},
		{"-- old a.go --", "-- new --", "a.txtar:11: an old text is followed by"},
		{"-- new --\n\n-- two", "-- two", "a.txtar:16: an old text is followed by"},
		{"-- old b.lua --\nx\n-- new --", "-- old b.lua --\nx", "the last old text has no new one"},
	} {
		if !strings.Contains(sample, c.old) {
			t.Fatalf("%q is not in the sample", c.old)
		}
		_, err := parse("a.txtar", []byte(strings.Replace(sample, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %s", c.new, c.old, err, c.want)
		}
	}
}
