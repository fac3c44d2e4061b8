package envoyimport

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
)

// FuzzConvert checks that any file is either refused, with errors at places that it has, or makes a
// document that is valid.
func FuzzConvert(f *testing.F) {
	archives, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	suite.Must(f, err)
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		suite.Must(f, err)
		files, _ := split(a)
		for _, one := range files {
			f.Add(one.Text, true)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, calendar bool) {
		o := usualOptions()
		if calendar {
			o.Timezone = "Europe/Berlin"
		}
		files := []File{{"b.yaml", []byte(
			"domain: other-domain\ndescriptors: [{key: b, rate_limit: {unit: day}}, {key: c, rate_limit: {unit: day, requests_per_unit: 1}}]\n")},
			{"a.yaml", text}}
		made, err := Convert(files, o)
		problems, refused := errors.AsType[strictyaml.Errors](err)
		switch {
		case err == nil:
			checkMade(t, made)
		case !refused || strings.Contains(err.Error(), "cannot say this"):
			t.Errorf("%v", err)
		}
		o.KeepGoing = true
		made, err = Convert(files, o)
		suite.Must(t, err)
		checkMade(t, made)
		if refused != (len(made.LeftOut) == 1 && made.LeftOut[0].Name == "a.yaml") {
			t.Errorf("refused %v, left out %v", refused, made.LeftOut)
		}
		lines := strings.Split(string(text), "\n")
		for _, p := range problems {
			if p.Pos.File == "a.yaml" && (p.Pos.Line < 1 || p.Pos.Line > len(lines) ||
				p.Pos.Column < 1 || p.Pos.Column > utf8.RuneCountInString(lines[p.Pos.Line-1])+1) {
				t.Errorf("%v is no place of the file", p)
			}
			if p.Problem == "" || p.Mend == "" {
				t.Errorf("%v does not say enough", p)
			}
		}
	})
}

// TestScalars: whatever is written as a scalar is read as the same text.
func TestScalars(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		root, err := strictyaml.Read("x", []byte("[a, {k: "+scalar(text)+", b: c}]\n"),
			strictyaml.Kind{MaxBytes: 1 << 10})
		if err != nil {
			t.Fatalf("%q as %s: %v", text, scalar(text), err)
		}
		items, _ := root.List("")
		o, _ := items[1].Object("", []string{"k", "b"})
		v, _ := o.Field("k")
		if got, ok := v.IsText(); !ok || got != text {
			t.Fatalf("%q as %s is read as %q", text, scalar(text), got)
		}
	}
	for _, text := range []string{"", "true", "No", "null", "~", "1", "1.5", "0x1", ".inf",
		"a: b", "a #b", "- a", "*", "&a", "!a", "{a}", "[a]", `"`, `\`, `\n`, "'", " a ", "a\tb", "ü", "日本",
		"\u00a0", "\u2028", "\ufeff", "a\nb", "\U0001f600", "<<", "=", "---", "@a", "`a", "%a",
		"a,b", "a:", "\x7f", "\u0085"} {
		check(t, text)
	}
	suite.Check(t, func(t *rapid.T) {
		check(t, rapid.StringN(0, 20, 60).Draw(t, "text"))
	})
}

// TestNamesAreStable: a limit keeps its name when others come and go, and no two have one name.
func TestNamesAreStable(t *testing.T) {
	keys := []string{"a", "A", "a.b", "b", "a_b", strings.Repeat("long", 12)}
	values := []string{"", "b", "B", "b*", "1.2.3.4", strings.Repeat("v", 60)}
	suite.Check(t, func(t *rapid.T) {
		draw := func(path []*descriptor) *row {
			for range rapid.IntRange(1, 3).Draw(t, "more") {
				path = append(path, &descriptor{key: rapid.SampledFrom(keys).Draw(t, "key"),
					value: rapid.SampledFrom(values).Draw(t, "value"), limit: &rateLimit{}})
			}
			return &row{path: path}
		}
		d := &domain{name: "d"}
		paths := map[string]bool{}
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			r := draw(nil)
			if text := entries(r.path); !paths[text] {
				paths[text] = true
				d.limits = append(d.limits, r)
			}
		}
		d.nameLimits()
		names := map[string]*row{}
		for _, r := range d.limits {
			if names[r.name] != nil {
				t.Fatalf("%s and %s are both named %s", entries(r.path), entries(names[r.name].path), r.name)
			}
			if validName(r.name) != r.name {
				t.Fatalf("%s is no valid name", r.name)
			}
			names[r.name] = r
			alone := &row{path: r.path}
			(&domain{name: "d", limits: []*row{alone}}).nameLimits()
			if alone.name != r.name && alone.name != plainName(r.path) {
				t.Fatalf("%s is named %s, and alone %s", entries(r.path), r.name, alone.name)
			}
		}
	})
}
