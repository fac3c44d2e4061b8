//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestPrefetchSeedsHold: no seed breaks an invariant whose nodes hold units of limits. Requests are
// admitted of these units, and denied by what nodes remember.
func TestPrefetchSeedsHold(t *testing.T) {
	for _, from := range []uint64{1, beyondDeleted} {
		h := Hunt{Config: Config{Prefetch: true}, From: from, Seeds: suite.Short[uint64](30, 60)}
		if from == beyondDeleted {
			h.For, h.Seeds = 60_000_000, 1
		}
		tally := holds(t, h)
		if tally.Seeds > 1 && tally.Counts.Deeds[Freeze] == 0 {
			t.Error("no machine stood still with its clocks")
		}
		if tally.Seeds > 1 && tally.Counts.Spent == 0 || tally.Counts.Remembered == 0 {
			t.Errorf("%d requests admitted of units that nodes held, %d denied from memory",
				tally.Counts.Spent, tally.Counts.Remembered)
		}
	}
}

// beyondDeleted is a seed in which a bucket expires while nodes deny by what they remember of it.
// Such a denial does not use the bucket.
const beyondDeleted = 870

// TestPrefetch: the draw makes limits of which nodes hold units, of both kinds that allow it.
func TestPrefetch(t *testing.T) {
	kinds := map[string]int{}
	const plans = 50
	for seed := range uint64(plans) {
		p := Draw(seed, Config{For: 30_000_000, Prefetch: true})
		w, err := newWorld(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range w.limits {
			if l.policy.Consistency == "prefetch" {
				kinds[string(l.kind())]++
			}
		}
		w.close()
	}
	if len(kinds) != 2 || kinds["fixed_window"] < 5 || kinds["sliding_window_counter"] < 5 {
		t.Errorf("in %d plans, limits of which nodes hold units: %v", plans, kinds)
	}
}

// TestPrefetchPlaysTheSameAgain: what nodes hold depends on the seed alone.
func TestPrefetchPlaysTheSameAgain(t *testing.T) {
	for seed := range uint64(5) {
		var digests [2]Digest
		for i := range digests {
			o, err := RunDigested(Draw(seed, Config{For: 30_000_000, Prefetch: true}))
			if err != nil {
				t.Fatal(err)
			}
			digests[i] = o.Digest
		}
		if digests[0] != digests[1] {
			t.Errorf("seed %d: %v", seed, digests)
		}
	}
}

// TestNoRequestMeetsTooMuch: limits that one script call cannot decide together, such as three
// logs, do not apply to the same requests. Seed 13388 draws three logs.
func TestNoRequestMeetsTooMuch(t *testing.T) {
	p := Draw(13388, Config{For: 60_000_000})
	if p.light() {
		t.Fatal("the seed draws other limits now: look for one with three logs together")
	}
	d, err := p.document(1)
	if err != nil {
		t.Fatal(err)
	}
	if d.Limits[0].Domain == d.Limits[1].Domain || d.Limits[1].Domain == d.Limits[2].Domain {
		t.Errorf("three logs apply to one request:\n%s", p.Document)
	}
}
