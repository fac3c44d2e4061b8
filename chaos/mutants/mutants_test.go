//go:build !race

package mutants

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const moduleDir = "../.."

// all returns the mutants.
func all(t *testing.T) []Mutant {
	t.Helper()
	every, err := All()
	suite.Must(t, err)
	return every
}

// TestEveryEditFits applies every mutant to the source: each old text must occur exactly once, and
// the result must parse.
func TestEveryEditFits(t *testing.T) {
	for _, m := range all(t) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if _, err := m.Apply(moduleDir); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEveryHoleIsOpened: each hole has a mutant, or a reason why not.
func TestEveryHoleIsOpened(t *testing.T) {
	known := map[string]bool{}
	for _, h := range holes {
		known[h.name] = true
		opened := slices.ContainsFunc(all(t), func(m Mutant) bool { return m.Hole == h.name })
		if opened == (h.unruled != "") {
			t.Errorf("hole %q: opened by a mutant: %v, said to have no rule: %q", h.name, opened, h.unruled)
		}
	}
	names := map[string]bool{}
	for _, m := range all(t) {
		if !known[m.Hole] {
			t.Errorf("mutant %s: no hole is called %q", m.Name, m.Hole)
		}
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		if len(m.Edits) == 0 {
			t.Errorf("mutant %s edits nothing", m.Name)
		}
		if _, err := regexp.Compile(m.Says); err != nil {
			t.Errorf("mutant %s: %v", m.Name, err)
		}
	}
}

// TestSomeAreFound builds three mutants and has the simulator find them, of which one suffices in
// make test. make mutants does so with all.
func TestSomeAreFound(t *testing.T) {
	for i, name := range []string{"reply-before-fsync", "counter-without-shadow", "late-credit-counts-now"} {
		t.Run(name, func(t *testing.T) {
			if i > 0 {
				suite.Long(t)
			}
			m, err := Find(name)
			suite.Must(t, err)
			binary := filepath.Join(t.TempDir(), "seeds")
			suite.Must(t, m.Build(t.Context(), moduleDir, "./chaos/mutants/seeds", binary))
			seed, violation, err := m.Run(t.Context(), binary, m.Within)
			suite.Must(t, err)
			t.Logf("seed %d: %s", seed, violation)
		})
	}
}

// TestJudgement: a test that says something else, or that it has seen too little, has found
// nothing.
func TestJudgement(t *testing.T) {
	says := regexp.MustCompile("admitted of|missing|out of range|states|lent")
	const failed = "--- FAIL: TestHolds (0.01s)\n    --- FAIL: TestHolds/kind (0.00s)\n"
	for said, want := range map[string]string{
		failed + "        holds_test.go:12: 5 admitted of 4\n        holds_test.go:20: later\nFAIL\n":               "5 admitted of 4",
		failed + "    search_test.go:66: 7 states: not a space worth searching\nFAIL\n":                             "",
		failed + "    holds_test.go:66: 3 lent: the test shows nothing\n    holds_test.go:9: 1 is missing\nFAIL\n":  "1 is missing",
		"--- FAIL: TestHolds (0.01s)\npanic: runtime error: index out of range [recovered]\n\tpanic: again\nFAIL\n": "panic: runtime error: index out of range [recovered]",
		failed + "        holds_test.go:12: cannot reach the store\nFAIL\n":                                         "",
		"FAIL\n": "",
	} {
		if got := judgement(said, says); got != want {
			t.Errorf("%q of %q, want %q", got, said, want)
		}
	}
}
