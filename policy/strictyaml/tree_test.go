package strictyaml

import (
	"reflect"
	"strings"
	"testing"
)

// TestTrees reads mappings of anything. An empty problem means that the tree is accepted.
func TestTrees(t *testing.T) {
	type m = map[string]any
	for src, c := range map[string]struct {
		want m
		says string
	}{
		`{a: x, b: "1", c: 'yes', d: 1.2.3.4, e: 2024-01-01, f: -}`: {m{"a": "x", "b": "1", "c": "yes", "d": "1.2.3.4", "e": "2024-01-01", "f": "-"}, ""},
		`{a: 1, b: -0.0, c: 1e2, d: 0.5}`:                           {m{"a": 1.0, "b": 0.0, "c": 100.0, "d": 0.5}, ""},
		`{a: true, b: false, c: null, d: ~, e: }`:                   {m{"a": true, "b": false, "c": nil, "d": nil, "e": nil}, ""},
		`{a: {}, b: [], c: [[x]]}`:                                  {m{"a": m{}, "b": []any{}, "c": []any{[]any{"x"}}}, ""},
		"\n  a:\n  - b: 1\n    c:\n  -\n":                           {m{"a": []any{m{"b": 1.0, "c": nil}, nil}}, ""},
		`{}`:                                                        {m{}, ""},
		`[a]`:                                                       {nil, "a: a list stands where a mapping is expected; write it"},
		`{a: [[{b: 1}]]}`:                                           {nil, "a.a[0][0]: mappings and lists more than 3 deep; "},
		`{a: [1, 2, 3, 4, 5, 6]}`:                                   {nil, "a: more than 6 values; remove some"},
		`{a: [1, 2, 3, 4, 5]}`:                                      {m{"a": []any{1.0, 2.0, 3.0, 4.0, 5.0}}, ""},
		`{a: Yes}`:                                                  {nil, `a.a: Yes is not the same to all readers of YAML; put text in quotes: "Yes"`},
		`{a: {N: 1}}`:                                               {nil, "a.a.N: N is not the same to all readers"},
		`{a: 0x1F}`:                                                 {nil, "0x1F is not the same to all readers"},
		`{a: 0o17}`:                                                 {nil, "0o17 is not the same to all readers"},
		`{a: +.5e3}`:                                                {nil, "+.5e3 is not the same to all readers"},
		`{a: -.inf}`:                                                {nil, "-.inf is not the same to all readers"},
		`{a: TRUE}`:                                                 {nil, "TRUE is neither true nor false"},
		`{a: 1e400}`:                                                {nil, "a.a: 1e400 is out of range; write a number that a double can hold"},
		`{2: a}`:                                                    {nil, `2 is not text in YAML; put it in quotes: "2"`},
		`{a: 1, b: {c: 1, c: 2}}`:                                   {nil, "a.b.c: given twice"},
		`{a: [` + strings.Repeat("1, ", 400) + `1]}`: {nil, "a: more than 6 values"},
	} {
		v := field(t, src)
		got := v.Tree("write it", TreeBounds{Depth: 3, Values: 6})
		err := v.Err()
		if c.says == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%s: %v, %v; want %v", src, got, err, c.want)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q and no more", src, err, c.says)
		}
	}
}
