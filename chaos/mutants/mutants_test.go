package mutants

import (
	"path/filepath"
	"slices"
	"testing"
)

const moduleDir = "../.."

// TestEveryEditFits applies every mutant to the source: each old text must occur exactly once, and
// the result must parse.
func TestEveryEditFits(t *testing.T) {
	for _, m := range All {
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
	for _, h := range Holes {
		known[h.Name] = true
		opened := slices.ContainsFunc(All, func(m Mutant) bool { return m.Hole == h.Name })
		if opened == (h.Unruled != "") {
			t.Errorf("hole %q: opened by a mutant: %v, said to have no rule: %q", h.Name, opened, h.Unruled)
		}
	}
	names := map[string]bool{}
	for _, m := range All {
		if !known[m.Hole] {
			t.Errorf("mutant %s: no hole is called %q", m.Name, m.Hole)
		}
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		if m.Rule == "" || m.Breaks == "" || m.Under == "" || len(m.Edits) == 0 {
			t.Errorf("mutant %s: rule, edits, what it breaks and under which faults must all be given", m.Name)
		}
		if tested := m.Test.Name != "" && m.Test.Package != ""; tested == (m.Within > 0) {
			t.Errorf("mutant %s: give one of Within and Test", m.Name)
		}
	}
}

// TestSomeAreFound builds three mutants and has the simulator find them. make mutants does so with
// all.
func TestSomeAreFound(t *testing.T) {
	for _, name := range []string{"reply-before-fsync", "counter-without-shadow", "late-credit-counts-now"} {
		t.Run(name, func(t *testing.T) {
			m, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(t.TempDir(), "seeds")
			if err := m.Build(t.Context(), moduleDir, "./chaos/mutants/seeds", binary); err != nil {
				t.Fatal(err)
			}
			seed, violation, err := m.Run(t.Context(), binary, m.Within)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("seed %d: %s", seed, violation)
		})
	}
}
