package strictyaml

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// kind is a kind of file that must not be empty.
var kind = Kind{MaxBytes: 4 << 10, TooLarge: "cut it", Empty: "fill it", TooDeep: "flatten it"}

// read reads a file that must be YAML.
func read(t *testing.T, src string) Value {
	t.Helper()
	root, err := Read("f.yaml", []byte(src), kind)
	suite.Must(t, err)
	return root
}

// field reads a file with the one field a and returns that.
func field(t *testing.T, src string) Value {
	t.Helper()
	o, ok := read(t, "a: "+src+"\n").Object("write a", []string{"a"})
	if !ok {
		t.Fatalf("%q is no mapping", src)
	}
	a, _ := o.Required("a", "write a")
	return a
}

func TestKindsDiffer(t *testing.T) {
	for src, want := range map[string]string{
		"":                                    "f.yaml:1:1: the file is empty; fill it",
		"# no more\n":                         "f.yaml:1:1: the file is empty; fill it",
		strings.Repeat("#\n", 2<<10):          "",
		strings.Repeat("#", 5<<10):            "f.yaml:1:1: the file is larger than 4 KiB; cut it",
		"\ufeff" + strings.Repeat("#", 4<<10): "f.yaml:1:1: the file is larger than 4 KiB; cut it",
		strings.Repeat("[", 20):               "f.yaml:1:17: nested more than 16 levels deep; flatten it",
	} {
		_, err := Read("f.yaml", []byte(src), kind)
		if want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.20q: %v, want %s", src, err, want)
		}
	}
	mayBeEmpty := Kind{MaxBytes: 100}
	if root, err := Read("f.yaml", nil, mayBeEmpty); err != nil || root.Given() {
		t.Errorf("an empty file is %+v, %v", root, err)
	}
}

// TestScalars reads a value as each type. An empty problem means that the value is accepted.
func TestScalars(t *testing.T) {
	for name, c := range map[string]struct {
		read func(v Value) any
		src  string
		want any
		says string
	}{
		"text": {text, `"8"`, "8", ""},
		"a number as text": {text, "8", "",
			`f.yaml:1:4: a: 8 is not text in YAML; put it in quotes: "8"`},
		"plain text":   {plain, "x", "x", ""},
		"plain number": {plain, "010", "010", ""},
		"plain word":   {plain, "true", "true", ""},
		"plain null": {plain, "null", "",
			"a: null stands where a plain value is expected; write it"},
		"plain nothing": {plain, "", "",
			"f.yaml:1:1: a: an empty value stands where a plain value"},
		"plain list": {plain, "[x]", "",
			"f.yaml:1:4: a: a list stands where a plain value is"},
		"integer": {integer, "-3", int64(-3), ""},
		"zero":    {integer, "0", int64(0), ""},
		"too large": {integer, "99999999999999999999", int64(0),
			"is out of range; write a whole number from -5 to 5"},
		"below": {integer, "-6", int64(0), "a: -6 is out of range; "},
		"other digits": {integer, "03", int64(0),
			"a: 03 is not a whole number in plain digits; "},
		"minus nothing": {integer, "-0", int64(0),
			"a: -0 is not a whole number in plain digits; "},
		"plus": {integer, "+1", int64(0),
			"a: +1 is not a whole number in plain digits; "},
		"underscore": {integer, "1_0", int64(0),
			"a: 1_0 is not a whole number in plain digits; "},
		"quoted integer": {integer, `"3"`, int64(0),
			`a: "3" in quotes is text; write a whole number`},
		"duration": {duration, "1m30s", 90 * time.Second, ""},
		"no duration": {duration, "1 m", time.Duration(0),
			`a: "1 m" is not a duration; write a duration like`},
		"long duration": {duration, "3m", time.Duration(0),
			`a: "3m" is out of range; write a duration like`},
		"true": {func(v Value) any { return v.Bool() }, "true", true, ""},
		"True": {func(v Value) any { return v.Bool() }, "True", false,
			"a: True is neither true nor false"},
		"a word":          {word, "red", "red", ""},
		"a word mistyped": {word, "gren", "", `a: "gren" is not known here; did you mean green?`},
		"another word":    {word, "b", "", `a: "b" is not known here; use one of red, green`},
		"no word":         {word, "[]", "", "a: a list is not known here; use one of red, green"},
	} {
		v := field(t, c.src)
		if got := c.read(v); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		err := v.Err()
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func text(v Value) any     { s, _ := v.Text("write it"); return s }
func plain(v Value) any    { s, _ := v.Plain("write it"); return s }
func integer(v Value) any  { return v.Integer(-5, 5) }
func duration(v Value) any { return v.Duration(0, 2*time.Minute) }
func word(v Value) any     { return OneOf(v, "red", "green") }

// TestEverythingIsReportedAtOnce: in the order of the file, whatever the order of reading.
func TestEverythingIsReportedAtOnce(t *testing.T) {
	root := read(t, "b: [1, x]\ncc: 1\na: 1\na: 2\n1: x\n")
	o, _ := root.Object("write a, b and c", []string{"a", "b", "ccc", "d"})
	o.Required("d", "write d")
	o.Required("ccc", "is told once, with the field that was meant")
	b, _ := o.Field("b")
	items, _ := b.List("write a list")
	for _, item := range slices.Backward(items) {
		item.Text("write text")
	}
	o.At("a").FailAt(b.KeyPos(), "wrong", "mend it")
	o.Add(Errors{{Pos: Position{"f.yaml", 9, 1}, Problem: "of somebody else", Mend: "mend it"}})
	const want = `f.yaml:1:1: d: missing; write d
f.yaml:1:1: a: wrong; mend it
f.yaml:1:5: b[0]: 1 is not text in YAML; put it in quotes: "1"
f.yaml:2:1: cc: no such field; did you mean ccc?
f.yaml:4:1: a: given twice, first at f.yaml:3:1; keep one of the two
f.yaml:5:1: 1 is not text in YAML; put it in quotes: "1"
f.yaml:9:1: of somebody else; mend it`
	if err := root.Err(); err == nil || err.Error() != want || root.Failures() != 7 {
		t.Errorf("got %d:\n%v\nwant:\n%s", root.Failures(), err, want)
	}
}

func TestPeek(t *testing.T) {
	root := read(t, "do: x\nat: 1\n")
	if at, ok := root.Peek("at"); !ok || at.Path() != "at" || at.Pos().Line != 2 ||
		at.KeyPos().Column != 1 {
		t.Errorf("at is %+v, %v", at, ok)
	}
	if _, ok := root.Peek("by"); ok {
		t.Error("by is not there")
	}
	if at, _ := root.Peek("do"); at.Err() != nil {
		t.Error(at.Err())
	} else if _, ok := at.Peek("x"); ok {
		t.Error("a text has no fields")
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"name", "key", "match", "algorithm", "limit", "window", "burst",
		"lending_limit",
		"on_exhausted", "on_store_failure", "shadow"}
	for word, want := range map[string]string{
		"windows": "window", "Window": "window", "widnow": "window", "algo": "algorithm",
		"lendinglimit": "lending_limit", "on-exhausted": "on_exhausted", "burts": "burst",
		"size": "", "x": "", "": "", "on_storage_failure": "on_store_failure",
	} {
		if got, _ := suggest(word, known); got != want {
			t.Errorf("suggest(%q) = %q, want %q", word, got, want)
		}
	}
}

// FuzzRead looks for a file that breaks the reader, or whose problems are at places outside it. It
// reads an accepted file down to its leaves, each as every type.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"a: [1, {b: x}]", "", "a:\n- \n? x", "region: &a x\nnode: *a",
		"<<: {}", "\t",
		"\"\t\t\\1", "\"\r\n\"0", "\xff\xfe", "a: |\n  x", "a\n---\nb", "name: [\n&a *a",
		"? [a]\n: &b {<<: *b}", "- !!int x", "a: &a {b: 1}\nc: [*a, {<<: *a, b: 2}]\n---\nb",
		"- &a [x]\n- &b {<<: [{k: *a}, {k: {}}], k: {}}\n- !!str &c 5\n- {<<: *b}\n- *c", "[*a, &a *a]",
		"a: |\n  x\n\n   y\nb: >-\n  y\n", "&a b: *a", "{&a a, *a, !!map {}: !!seq []}",
		"region: x\nregion: y", "a: b: c", "%YAML 1.2\n---\n", ".inf: .nan", "a: ~\nb:"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, kind := range []Kind{kind, foreign} {
			root, err := Read("f.yaml", src, kind)
			if err == nil {
				descend(root)
				err = root.Err()
				checkPlaces(t, src, root.Remarks())
			}
			var all Errors
			if err != nil && !errors.As(err, &all) {
				t.Fatalf("%v is no Errors", err)
			}
			checkPlaces(t, src, all)
		}
	})
}

// checkPlaces checks that each problem says enough, and where in the file.
func checkPlaces(t *testing.T, src []byte, all Errors) {
	lines := strings.Split(string(src), "\n")
	for _, e := range all {
		if e.Problem == "" || e.Mend == "" || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q does not say on one line what is wrong and how to mend it", e.Error())
		}
		if l := e.Pos.Line; l < 1 || l > len(lines) || e.Pos.Column < 1 ||
			e.Pos.Column > len([]rune(lines[l-1]))+1 {
			t.Errorf("%s is no place in the file", e.Pos)
		}
	}
}

func descend(v Value) {
	v.Number("write it")
	for _, read := range []func(Value) any{text, plain, integer, duration, word} {
		read(v)
	}
	v.Bool()
	items, _ := v.List("write a list")
	entries, _ := v.Entries("write a mapping")
	v.Object("write a mapping", []string{"name", "key"})
	for _, item := range items {
		descend(item)
	}
	for _, e := range entries {
		descend(e.Value)
	}
}
