//go:build !race

package sim

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestEnvoysSeedsHold: no seed breaks an invariant in which Envoys are assigned parts of a limit.
func TestEnvoysSeedsHold(t *testing.T) {
	tally := holds(t, Hunt{Config: Config{Envoys: true}, Seeds: suite.Short[uint64](20, 40)})
	if tally.Counts.Proxied < 100*int64(tally.Seeds) {
		t.Errorf("Envoys admitted %d requests in %d seeds: too few to say anything",
			tally.Counts.Proxied, tally.Seeds)
	}
}

// TestTightEnvoysComeNear: no seed breaks an invariant in which Envoys and callers of the stores ask for
// more than there is all the time, and nodes are starved or stand still. A quarter of the buckets come
// within a tenth of their limit.
func TestTightEnvoysComeNear(t *testing.T) {
	tally := holds(t, Hunt{Config: Config{Envoys: true, Tight: true}, Seeds: suite.Short[uint64](12, 40)})
	near := tally.Counts.Tightness
	if near.Exact < 10 || 4*near.Tenth < near.Exact {
		t.Errorf("%d of %d buckets come within a tenth of their limit", near.Tenth, near.Exact)
	}
	if tally.Counts.Proxied < 100*int64(tally.Seeds) {
		t.Errorf("Envoys admitted %d requests in %d seeds: too few to say anything", tally.Counts.Proxied, tally.Seeds)
	}
}

// TestEnvoysLuaDecidesAsTwins: the scripts and their twin give the same run when Envoys are
// assigned parts of a limit.
func TestEnvoysLuaDecidesAsTwins(t *testing.T) {
	for seed := range compared() / 2 {
		run := func(lua bool) Counts {
			p := Draw(seed, Config{For: 15_000_000, Envoys: true, Lua: lua})
			p.Acts = slices.DeleteFunc(p.Acts,
				func(a Act) bool { return a.Do == ClockStep || a.Do == StoreClock })
			o, err := Run(p)
			if err != nil {
				t.Fatal(err)
			}
			return o.Counts
		}
		a, b := run(false), run(true)
		if a.Events != b.Events || a.Proxied != b.Proxied || a.Admitted != b.Admitted ||
			a.Bytes != b.Bytes {
			t.Errorf("seed %d: by twins %+v, by Lua %+v", seed, a, b)
		}
	}
}
