package scenario

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// valid is a scenario that tests change.
const valid = `name: some-split
about: A sentence.
rows: [1, 8]
duration: 20s
regions:
  us: {weight: 40, nodes: 2}
  eu: {weight: 60}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 200, window: 1s}
  - {name: pair, domain: api, key: [a, b], algorithm: token_bucket, limit: 20, burst: 30, window: 1s}
added:
  - {name: more, domain: api, key: [more], algorithm: fixed_window, limit: 5, window: 1s}
load:
  - {region: us, limit: account, key: "42", rate: 300}
  - {region: eu, limit: pair, key: [x, "1"], rate: 10, cost: 2, from: 1s, to: 10s}
steps:
  - {at: 9s, do: heal}
  - {at: 5s, do: cut, between: [us], only: udp}
  - {at: 6s, do: kill, region: us, points: [after-fsync]}
expect:
  - {that: ceiling, limit: account, despite: [{cause: local, when: sometimes, region: us}]}
  - {that: split, limit: account, region: us, from: 2s, to: 9s, at-least: 90%}
`

func TestParse(t *testing.T) {
	s, err := Parse("file.yaml", []byte(valid))
	suite.Must(t, err)
	if s.Name != "some-split" || s.Duration != 20*time.Second || len(s.Rows) != 2 ||
		s.region("us").Nodes != 2 || s.region("eu").Nodes != 1 {
		t.Errorf("read as %+v", s)
	}
	if l := s.Load[1]; l.Cost != 2 || l.From != time.Second || l.To != 10*time.Second ||
		strings.Join(l.Key, "|") != "x|1" {
		t.Errorf("the second load is read as %+v", l)
	}
	cut, kill, heal := s.Steps[0], s.Steps[1], s.Steps[2]
	if cut.Do != "cut" || cut.Only != "udp" || strings.Join(cut.And, ",") != "eu" {
		t.Errorf("the first step by time is %+v", cut)
	}
	if kill.Node != 1 || kill.Times != 1 || len(heal.Between) != 2 || len(heal.And) != 2 {
		t.Errorf("what is left out is read as %+v, %+v", kill, heal)
	}
	if e := s.Expect[1]; e.AtLeast != 90 || e.From != 2*time.Second ||
		s.Expect[0].To != s.Duration {
		t.Errorf("the expectations are %+v", s.Expect)
	}
	first, second := s.Document(1, nil), s.Document(2, map[string]int64{"us": 7})
	for text, want := range map[string][2]bool{"more": {false, true},
		"us: {weight: 7}": {false, true}, "pair": {true, true}, "version: 2": {false, true}} {
		if strings.Contains(first, text) != want[0] || strings.Contains(second, text) != want[1] {
			t.Errorf("%q: in version 1 %v, in version 2 %v", text, strings.Contains(first, text),
				strings.Contains(second, text))
		}
	}
	if b := s.Watched(); len(b) != 2 || b[0].Splits["us"] != 80 || b[1].Name() != "pair/x,1" {
		t.Errorf("watched is %+v", b)
	}
}

// TestInvalid changes a line of the valid scenario. The error says where and what is wrong, and how
// to correct it.
func TestInvalid(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown field", "rows: [1, 8]", "row: [1, 8]",
			"f.yaml:3:1: row: no such field; did you mean rows?"},
		{"a field of another word", "only: udp", "percent: 3",
			"f.yaml:18:38: steps[1].percent: no such field; use one of do, at, between, and, one-way, only"},
		{"missing field", "duration: 20s\n", "", "f.yaml:1:1: duration: missing; add duration"},
		{"unknown word", "do: heal", "do: mend",
			`steps[0].do: "mend" is not known here; did you mean mend-disk?`},
		{"no word", "at: 9s, do: heal", "at: 9s", "steps[0]: do is missing; add do: and one of"},
		{"not YAML", "rows: [1, 8]", "rows: [1, 8", "not valid YAML"},
		{"no such region", "{region: us, limit: account", "{region: uk, limit: account",
			`f.yaml:14:14: load[0].region: "uk" is not known here; did you mean us?`},
		{"limit with a mistake", "limit: 200,", "limit: many,", "f.yaml:9:82: limits[0].limit:"},
		{"added with a mistake", "limit: 5,", "limit: -5,", "f.yaml:12:76: limits[0].limit:"},
		{"added twice", "name: more", "name: account",
			"together with limits it is no valid document"},
		{"a key too short", `key: [x, "1"]`, "key: [x]",
			"1 values for a key of 2; give a value for a, b"},
		{"two limits at once", "key: [a, b]", "key: [account]", "this request meets"},
		{"step after the end", "at: 9s", "at: 21s",
			`steps[0].at: "21s" is out of range; write a duration like 500ms or 10s, from 0s to 20s`},
		{"no such node", "region: us, points", "region: us, node: 3, points",
			`steps[2].node: 3 is out of range; write a whole number from 1 to 2`},
		{"no such point", "after-fsync", "after-all",
			`"after-all" is not known here; use one of before-debit`},
		{"empty span", "from: 2s, to: 9s", "from: 9s, to: 9s", "the span from 9s to 9s is empty"},
		{"no load on it", "that: ceiling, limit: account,",
			`that: ceiling, limit: account, key: "43",`, "there is no load on this"},
		{"on several", "that: split, limit: account", "that: split",
			"there is load on several limits or keys"},
		{"no window to tell apart", "that: split, limit: account", "that: split, limit: pair",
			"only the windows of a fixed_window"},
		{"forgiven twice", "that: ceiling, limit: account,",
			"that: ceiling, limit: account, above: 5,", "above and despite both say"},
		{"name", "name: some-split", "name: Some Split", "is no name of a scenario"},
		{"percentage", "90%", "101%", `"101" is no percentage`},
		{"and alone", "between: [us], only", "and: [us], only", "and is given without between"},
		{"one region", "  eu: {weight: 60}\n", "", "1 regions; name 2 to 20"},
		{"nothing expected", valid[strings.Index(valid, "expect:"):], "expect: []\n",
			"nothing is expected"},
		{"empty", valid, "", "the file is empty"},
		{"given twice", "rows: [1, 8]", "about: again", "given twice"},
		{"load to change", "do: heal", "do: load, region: eu, limit: account, rate: 5",
			"there is no such load to change"},
		{"no way to cut", "between: [us]", "between: [us, eu]",
			"there is no way between us, eu and no other region"},
		{"a way to itself", "between: [us], only: udp", "between: [us], and: [us]",
			"there is no way between us and us"},
		{"flaps for less than once", "do: heal", "do: flap, every: 3s, for: 1s",
			"every is longer than for"},
		{"Redis after a failover", "do: heal",
			"do: kill-redis, region: us}\n  - {at: 5s, do: failover-redis, region: us",
			"the Redis of us was failed over before"},
		{"Redis whose clock is moved", "do: heal",
			"do: flush-redis, region: us}\n  - {at: 10s, do: clock, region: us, by: -500ms",
			"the Redis of us is an embedded one, for its clock is moved"},
		{"clock that stays", "do: heal", "do: clock, region: us, by: 0s", "this moves no clock"},
		{"clock too far", "do: heal", "do: clock, region: us, by: -2m",
			`"-2m" is out of range; write a duration like 500ms or 10s, from -1m0s to 1m0s`},
		{"too much load", "rate: 300",
			"rate: 20000}\n  - {region: eu, limit: account, key: \"42\", rate: 20000}\n  - {region: us, limit: account, key: \"41\", rate: 20000, to: 10s", "requests: more than 1000000 cannot be kept"},
		{"home mode", "limit: 200", "limit: 3",
			"has no fixed split: it is less than two for each region"},
		{"times alone", "region: us, points: [after-fsync]", "region: us, times: 3",
			"times is for points"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(valid, c.old) {
				t.Fatalf("nothing to change: %q", c.old)
			}
			_, err := Parse("f.yaml", []byte(strings.Replace(valid, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is\n%v\nwant %s", err, c.want)
			}
		})
	}
}

// shipped are the files of the scenarios that come with quotad.
func shipped(t testing.TB) (paths []string) {
	t.Helper()
	paths, err := fs.Glob(os.DirFS("../scenarios"), "*.yaml")
	if err != nil || len(paths) < 14 {
		t.Fatalf("%d scenarios, %v", len(paths), err)
	}
	return paths
}

func TestShippedScenariosAreValid(t *testing.T) {
	for _, file := range shipped(t) {
		src, err := os.ReadFile(filepath.Join("../scenarios", file))
		suite.Must(t, err)
		s, err := Parse(file, src)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name+".yaml" != file || len(s.Rows) == 0 {
			t.Errorf("%s: its name is %s, its rows are %v", file, s.Name, s.Rows)
		}
		suite.Must(t, s.Impossible((*Fleet)(nil)))
		for _, step := range s.Steps {
			if step.String() == "" {
				t.Errorf("%s: a step has no words", file)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	for _, file := range shipped(f) {
		src, err := os.ReadFile(filepath.Join("../scenarios", file))
		suite.Must(f, err)
		f.Add(src)
	}
	f.Add([]byte("name: [\n&a *a"))
	f.Add([]byte("limits:\n- \n? x"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Parse("f.yaml", src)
		if err == nil {
			if _, err := policy.Parse("limits.yaml", []byte(s.Document(2, nil))); err != nil {
				t.Errorf("the document of a valid scenario is not: %v", err)
			}
			return
		}
		var problems strictyaml.Errors
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("an error that is no list of problems: %v", err)
		}
		for _, p := range problems {
			if p.Pos.Line < 1 || p.Pos.Column < 1 || p.Problem == "" || p.Mend == "" {
				t.Errorf("%+v does not say what is wrong where, and how to mend it", p)
			}
		}
	})
}
