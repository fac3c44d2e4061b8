// Package suite is where a test says what it is, and how long it waits. It imports nothing of
// quotad, so the tests of every package may use it.
package suite

import (
	"errors"
	"flag"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Patience is how long at most a test waits for what a starved machine is late with.
const Patience = time.Minute

// poll is how often Eventually looks.
const poll = 20 * time.Millisecond

// Long leaves out a test, or a case of one, under go test -short, so from make test and make race:
// others like it stay there. make long plays it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make long plays it")
	}
}

// Short returns the first value under go test -short, so in make test and make race, and else the
// second: how many seeds, how long, how often.
func Short[T any](short, long T) T {
	if testing.Short() {
		return short
	}
	return long
}

// OneGoroutine leaves out a test under the race detector, which has nothing to look for in it: the
// test does one thing at a time, or what it tests runs in other processes. A file that has only
// such tests has the build constraint !race instead.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("of one goroutine: make test plays it")
	}
}

// LongWithRace leaves out a test under the race detector in make race: it is long there, others
// have the same goroutines, and make test plays it. go test -race without -short plays it, too.
func LongWithRace(t testing.TB) {
	t.Helper()
	if Race && testing.Short() {
		t.Skip("long with the race detector: make test plays it")
	}
}

// OnTwins reports whether stories of nodes are played on twins of the scripts (chaos/lab) in place
// of embedded Redis servers, which run the scripts themselves and take three times as long: under
// go test -short, and under the race detector. make long plays them on the scripts.
func OnTwins() bool { return Race || testing.Short() }

// Eventually looks again and again until a condition holds, and fails the test after Patience.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !so(); {
		if time.Now().After(end) {
			t.Fatalf("it never came to this: %s", what)
		}
		select {
		case <-time.After(poll):
		case <-t.Context().Done():
		}
	}
}

// T is a test, a benchmark, or a run of rapid's.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Must ends a test if there are errors of which nothing can be said but themselves.
func Must(t T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Check is rapid.Check, with as many examples under go test -short as without: rapid by itself
// would take a fifth of them, and half the steps of each.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	whole()
	rapid.Check(t, property)
}

// whole makes up for what rapid divides by.
var whole = sync.OnceFunc(func() {
	for name, times := range map[string]int{"rapid.checks": Short(5, 1), "rapid.steps": Short(2, 1)} {
		f := flag.Lookup(name)
		n, err := strconv.Atoi(f.Value.String())
		if err == nil {
			err = f.Value.Set(strconv.Itoa(times * n))
		}
		if err != nil {
			panic(err)
		}
	}
})
