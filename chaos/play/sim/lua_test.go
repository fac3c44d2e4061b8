//go:build !race

package sim

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// compared returns how many seeds of each draw are played by the scripts and by their twins.
func compared() uint64 { return suite.Short[uint64](2, 4) }

// TestLuaDecidesAsTwins checks that a run with the production scripts equals the run with their
// twins, to the last message. Plans with clock steps are left out: inspecting a ledger tells its
// store the time, and the ledgers of the Lua are inspected less often.
func TestLuaDecidesAsTwins(t *testing.T) {
	for seed := uint64(1); seed <= compared(); seed++ {
		c := Config{For: 20_000_000}
		steady := func() *Plan {
			p := Draw(seed, c)
			p.Acts = slices.DeleteFunc(p.Acts,
				func(a Act) bool { return a.Do == ClockStep || a.Do == StoreClock })
			return p
		}
		twins, err := Run(steady())
		if err != nil {
			t.Fatal(err)
		}
		c.Lua = true
		lua, err := Run(steady())
		if err != nil {
			t.Fatal(err)
		}
		a, b := twins.Counts, lua.Counts
		if a.Events != b.Events || a.Admitted != b.Admitted || a.Denied != b.Denied ||
			a.Messages != b.Messages || a.Bytes != b.Bytes || a.Hints != b.Hints {
			t.Errorf("seed %d: by twins %+v, by Lua %+v", seed, a, b)
		}
	}
}
