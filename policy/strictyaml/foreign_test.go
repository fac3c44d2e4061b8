package strictyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// foreign is a kind of file that another program reads too.
var foreign = Kind{MaxBytes: 1 << 20, TooLarge: "cut it", Empty: "fill it", TooDeep: "flatten it",
	Foreign: true, MergedInside: []string{"in"}}

// shown returns a foreign file as it is read, on one line, or its errors.
func shown(src string) string {
	root, err := Read("f.yaml", []byte(src), foreign)
	if err != nil {
		return err.Error()
	}
	text := show(root)
	if err := root.Err(); err != nil {
		return err.Error()
	}
	for _, remark := range root.Remarks() {
		text += "\n" + remark.Error()
	}
	return text
}

func show(v Value) string {
	var all []string
	switch what := v.Describe(); what {
	case "a mapping":
		entries, _ := v.Entries("write a mapping")
		for _, e := range entries {
			all = append(all, e.Name+": "+show(e.Value))
		}
		return "{" + strings.Join(all, ", ") + "}"
	case "a list":
		items, _ := v.List("write a list")
		for _, item := range items {
			all = append(all, show(item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	default:
		return what
	}
}

// TestForeign has what gopkg.in/yaml.v2 v2.4.0 makes of the same text, unless it is an error.
func TestForeign(t *testing.T) {
	for src, want := range map[string]string{
		"a: &x {b: 1}\nc: *x\nd: [*x]":              "{a: {b: 1}, c: {b: 1}, d: [{b: 1}]}",
		"- &x\n  b: &y c\n- [*x, *y]":               `[{b: "c"}, [{b: "c"}, "c"]]`,
		"- &x 1\n- *x\n- &x 2\n- *x":                "[1, 1, 2, 2]",
		"a: &x\nb: *x":                              "{a: an empty value, b: an empty value}",
		"- &x {a: 1, b: 2}\n- {<<: *x, b: 3, c: 4}": "[{a: 1, b: 2}, {a: 1, b: 3, c: 4}]",
		"- &x {a: 1}\n- &y {a: 2, b: 2}\n- <<: [*x, *y]\n- <<: {c: 1, <<: *x}": "[{a: 1}, {a: 2, b: 2}, {a: 1, b: 2}, {c: 1, a: 1}]",
		// a merge key is as if what it merges stood there, and the last one of a name counts
		"- &x {a: 1}\n- {a: 2, <<: *x}": "[{a: 1}, {a: 1}]\n" +
			"f.yaml:2:4: a loses to the one that << merges at f.yaml:2:10, for it stands before it; write << first, if this one is to win",
		"- &x {in: {a: 1, b: 1}, by: {a: 1}}\n- {<<: *x, in: {b: 2, c: 2}, by: {b: 2}}": "[{in: {a: 1, b: 1}, by: {a: 1}}, {in: {a: 1, b: 2, c: 2}, by: {b: 2}}]",
		"- &x {in: {a: 1}}\n- {<<: *x, in: }":                                           "[{in: {a: 1}}, {in: an empty value}]",
		"- &x {in: {a: 1}}\n- {<<: *x, in: {b: 1, b: 2}}":                               "f.yaml:2:23: [1].in.b: given twice, first at f.yaml:2:17; keep one of the two",
		"- {<<: {a: 1}, a: 2, a: 3}":                                                    "f.yaml:1:22: [0].a: given twice, first at f.yaml:1:16; keep one of the two",
		`"<<": {a: 1}`:                                                                  "{<<: {a: 1}}",
		"a: |\n  x\n   y\nb: >-\n  x\n  y\n":                                            `{a: "x\n y\n", b: "x y"}`,
		"a: !!str 5\nb: !!str &x yes\nc: *x\nd: !!int \"5\"\ne: !!map {}\nf: !!seq []":  `{a: "5", b: "yes", c: "yes", d: "5", e: {}, f: []}`,
		"a: 1\n---\n!x &y": "{a: 1}\n" +
			"f.yaml:2:1: a second document starts here, and only the first one of a file is read; give it a file of its own",
		"a: 1\n...\nb": "{a: 1}\n" +
			"f.yaml:3:1: a second document starts here, and only the first one of a file is read; give it a file of its own",
		"---\n---\na: 1": "f.yaml:1:1: the file is empty; fill it\n" +
			"",
		"a: *x\nb: &x 1":            "f.yaml:1:4: no anchor before it is named &x; name one that stands before it",
		"a: &x [*x]":                "f.yaml:1:8: &x would hold itself; name an anchor that has ended",
		"a:\n  <<: 1":               "f.yaml:2:3: a merge key (<<) merges mappings, and this is none; write <<: *name, where &name is a mapping",
		"a: !!set {b: }":            "f.yaml:1:4: the tag !!set is not allowed here; remove the tag",
		"a: !!str [x]":              "f.yaml:1:9: not valid YAML: unexpected scalar value type; check indentation, quotes and brackets on this line and its neighbours",
		"&x a: 1":                   "f.yaml:1:1: an anchor (&name) is not allowed in front of a name; write it on the line before, or behind the colon",
		"- &x a: 1":                 "f.yaml:1:3: an anchor (&name) is not allowed in front of a name; write it on the line before, or behind the colon",
		"a: &x b\n*x : 1":           "f.yaml:2:1: an alias (*name) is not allowed as a name; write the name out",
		"!!str a: 1":                "f.yaml:1:1: a tag (!name) is not allowed in front of a name; remove the tag",
		"%YAML 1.1\n---\na: 1":      "f.yaml:1:1: directives (%NAME) are not allowed; remove the line",
		"? a\n: 1":                  "f.yaml:1:1: explicit keys (?) are not allowed; write it as name: value",
		"a: &x {b: 1, b: 2}\nc: *x": "f.yaml:1:14: a.b: given twice, first at f.yaml:1:8; keep one of the two\nf.yaml:1:14: c.b: given twice, first at f.yaml:1:8; keep one of the two",
	} {
		if got := shown(src); got != strings.TrimSpace(want) {
			t.Errorf("%s\nis read as\n%s\nwant\n%s", src, got, want)
		}
	}
}

// TestForeignScalars: words and digits as gopkg.in/yaml.v2 reads them into a bool and a number.
func TestForeignScalars(t *testing.T) {
	const refused = "refused"
	for src, want := range map[string]string{
		"y": "true", "Yes": "true", "ON": "true", "True": "true", "n": "false", "No": "false",
		"off": "false", "FALSE": "false", "!!bool 'on'": "true",
		"yEs": refused, "1": refused, "'yes'": refused, `"true"`: refused, "maybe": refused,
	} {
		v := foreignField(t, src)
		got := fmt.Sprint(v.Bool())
		if v.Err() != nil {
			got = refused
		}
		if got != want {
			t.Errorf("%s is read as %s, want %s", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"1_000": "1000", "+5": "5", "0x1F": "31", "0b11": "3", "010": "8", "0o17": "15", "-0x1": "-1",
		"5_": "5", "-0": "0", "!!int '7'": "7",
		"08": refused, "_5": refused, "1e3": refused, "1.0": refused, "'5'": refused, "x": refused,
		"0x": refused, "+": refused, "99999": refused, "99999999999999999999": refused,
	} {
		v := foreignField(t, src)
		got := fmt.Sprint(v.Integer(-1000, 1000))
		if v.Err() != nil {
			got = refused
		}
		if got != want {
			t.Errorf("%s is read as %s, want %s", src, got, want)
		}
	}
}

func foreignField(t *testing.T, src string) Value {
	root, err := Read("f.yaml", []byte("a: "+src), foreign)
	suite.Must(t, err)
	a, _ := root.Peek("a")
	return a
}

// TestExpansionIsBounded: few lines can stand for much.
func TestExpansionIsBounded(t *testing.T) {
	laughs := "- &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	deep := "- &a0 [x]\n"
	merges := "- &a {" + strings.Repeat("b: c, ", 1000) + "}\n"
	for i := range 20 {
		laughs += fmt.Sprintf("- &a%d [%s]\n", i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
		deep += fmt.Sprintf("- &a%d [[[{b: *a%d}]]]\n", i+1, i)
		merges += fmt.Sprintf("- {<<: [%s]}\n", strings.Repeat("*a, ", 10))
	}
	fits := "- &a " + strings.Repeat("[", 10) + strings.Repeat("]", 10) + "\n- [" + strings.Repeat("*a,", 9_999) + "]\n"
	for src, want := range map[string]string{
		laughs:                                   "f.yaml:5:43: aliases and merge keys add more than 100000 values; split the file, or write fewer aliases",
		merges:                                   "f.yaml:11:4",
		deep:                                     "with what it stands for, nested more than 64 levels deep; flatten it",
		fits:                                     "",
		"{" + strings.Repeat("*a, ", 1100) + "}": "more than 1000 empty values",
		"{" + strings.Repeat("&a b, ", 1100) + "}":   "more than 1000 empty values",
		"a: 1\n" + strings.Repeat("---\na\n", 9_999): "",
	} {
		_, err := Read("f.yaml", []byte(src), foreign)
		if want == "" {
			suite.Must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %.300v, want %s", src, err, want)
		}
	}
}
