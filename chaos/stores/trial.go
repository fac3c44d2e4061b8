package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/lab/redisserver"
)

// scenarios are those in which something happens to a Redis.
var scenarios = []string{"redis-killed", "redis-flushed", "redis-stopped", "stale-failover"}

const (
	// commandTime bounds each command. The longest, every script at its worst input, takes a minute
	// and a half.
	commandTime = 10 * time.Minute
	// rounds and roundTime are how often, and how long, each store is measured.
	rounds    = 3
	roundTime = "2s"
	// most of a command's output that is kept
	maxOutput = 16 << 20
)

const tested = "./region/memory/store"

// trial runs commands on stores.
type trial struct {
	quotad   string
	progress io.Writer
}

// try runs on a store everything but the measurement.
func (t *trial) try(ctx context.Context, s *store) {
	if s.why != "" {
		fmt.Fprintf(t.progress, "%s: not run: %s\n", s.from, s.why)
		return
	}
	fmt.Fprintf(t.progress, "%s of %s: tests, scripts, scenarios\n", s.version, s.from)
	out, err := t.command(ctx, s, "go", "test", "-count", "1", "-short", "-json", "-timeout", "9m", tested)
	s.judge(out, err)
	out, err = t.command(ctx, s, "go", "test", "-count", "1", "-run", "^$", "-bench", "Worst", "-benchtime", "1x",
		"-timeout", "9m", tested)
	if s.slowest = slowest(string(out)); err != nil || s.slowest.micros == 0 {
		s.fail("scripts at their worst input", err, out)
	}
	for _, name := range scenarios {
		if out, err := t.command(ctx, s, t.quotad, "chaos", "run", name, "--seed", "1"); err != nil {
			s.fail("scenario "+name, err, out)
		} else {
			s.scenarios++
		}
	}
}

// command runs a command that starts the store where it needs a Redis, and returns the end of what
// it said.
func (t *trial) command(ctx context.Context, s *store, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	path, err := filepath.Abs(s.path)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	// A command that is interrupted ends what it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Env = append(os.Environ(), redisserver.Variable+"="+path)
	var said, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &problems
	err = cmd.Run()
	all := said.Bytes()
	if err != nil {
		all = append(all, problems.Bytes()...)
	}
	return all[max(0, len(all)-maxOutput):], err
}

// fail notes that something failed, with the last lines of what was said.
func (s *store) fail(what string, err error, out []byte) {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	s.failures = append(s.failures, fmt.Sprintf("%s: %v\n  %s", what, err,
		strings.Join(lines[max(0, len(lines)-10):], "\n  ")))
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

// withoutTLS is what a server says that was built without TLS and is to use it.
const withoutTLS = "Failed finding TLS support"

// judge counts the tests that passed, by the lines of go test -json, and notes those that did not.
func (s *store) judge(out []byte, err error) {
	said := map[string]string{}
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil || e.Test == "" {
			continue
		}
		test, _, inner := strings.Cut(e.Test, "/")
		switch said[test] += e.Output; {
		case inner:
		case e.Action == "pass":
			s.tests, s.passed = s.tests+1, s.passed+1
		case e.Action == "fail" && strings.Contains(said[test], withoutTLS):
			s.tests, s.lacks = s.tests+1, append(s.lacks, "TLS: "+test)
		case e.Action == "fail", e.Action == "skip": // a test that was not run shows nothing
			s.tests++
			s.fail(test, err, []byte(said[test]))
		}
	}
	if s.tests == 0 || err != nil && s.passed == s.tests {
		s.fail("tests of "+tested, err, out)
	}
}

// script is a script at its worst input, and the microseconds that it takes.
type script struct {
	script string
	micros int
}

var figure = regexp.MustCompile(`\s{2,}(\d+)\b`)

// slowest returns the slowest script of the table that the benchmark Worst prints.
func slowest(out string) (s script) {
	_, table, _ := strings.Cut(out, "\nmedians;")
	for line := range strings.Lines(table) {
		for _, m := range figure.FindAllStringSubmatch(line, -1) {
			if n, err := strconv.Atoi(m[1]); err == nil && n > s.micros {
				name, _, _ := strings.Cut(line, "  ")
				s = script{name, n}
			}
		}
	}
	return s
}

// measure measures what a node decides on each store, by turns.
func (t *trial) measure(ctx context.Context, stores []*store) {
	rates, costs := map[*store][]float64{}, map[*store][]float64{}
	for round := range rounds {
		for _, s := range stores {
			if s.why != "" {
				continue
			}
			fmt.Fprintf(t.progress, "%s of %s: measured, round %d of %d\n", s.version, s.from, round+1, rounds)
			out, err := t.command(ctx, s, t.quotad, "bench", "--rounds", "1", "--duration", roundTime, "-o", "json")
			rate, cost, ok := measured(out)
			if err != nil || !ok {
				s.fail("measurement", err, out)
				continue
			}
			rates[s], costs[s] = append(rates[s], rate), append(costs[s], cost)
		}
	}
	for _, s := range stores {
		s.rate, s.cost = median(rates[s]), median(costs[s])
	}
}

// measured reads the decisions a second of a node, and the microseconds of its Redis for each, from
// quotad bench.
func measured(out []byte) (rate, cost float64, ok bool) {
	var report struct {
		Subjects []struct {
			Name string
			Rate float64 `json:"decisions_per_second"`
			Cost float64 `json:"redis_cpu_us_per_decision"`
		}
	}
	if json.Unmarshal(out, &report) != nil {
		return 0, 0, false
	}
	for _, s := range report.Subjects {
		if s.Name == "quotad" {
			return s.Rate, s.Cost, s.Rate > 0
		}
	}
	return 0, 0, false
}

// median returns the median; 0 of nothing.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
