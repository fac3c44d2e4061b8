package sim

import (
	"flag"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

var variedTo = flag.Uint64("varied", 100, "how many seeds TestVariedSeedsHold runs")

// TestVariedSeedsHold: no seed breaks an invariant whose limits say what the other draws leave out.
func TestVariedSeedsHold(t *testing.T) {
	h := Hunt{Config: Config{For: *seconds * 1_000_000, Varied: true}, From: *from,
		Seeds: *variedTo, LuaEvery: *luaEvery}
	tally, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tally.Broken != nil {
		f, err := Explain(tally.Broken.Plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Fatalf("seed %d: %v\n%v\n%s", f.Seed, f.Broken, f.Acts, f.Timeline)
	}
	if tally.Counts.Deeds[Reset] == 0 {
		t.Error("no bucket was reset")
	}
}

// TestVaried: the draw makes each thing that the other draws leave out, for every kind of limit.
func TestVaried(t *testing.T) {
	drawn := map[string]map[algorithms.Kind]int{}
	note := func(what string, k algorithms.Kind, is bool) {
		if drawn[what] == nil {
			drawn[what] = map[algorithms.Kind]int{}
		}
		if is {
			drawn[what][k]++
		}
	}
	for seed := range uint64(150) {
		p := Draw(seed, Config{For: 30_000_000, Varied: true})
		d, err := p.document(1)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, l := range d.Limits {
			least := l.Weights[0]
			for _, w := range l.Weights {
				least = min(least, w)
			}
			note("a weight of zero", l.Algorithm, least == 0)
			note("a borrowing limit", l.Algorithm, l.BorrowingLimit != policy.Unlimited)
			note("on_store_failure: allow", l.Algorithm, l.OnStoreFailure == policy.StoreFailureAllow)
			note("shadow", l.Algorithm, l.Shadow)
			note("refunds", l.Algorithm, p.Refunds)
		}
	}
	for what, of := range drawn {
		for _, k := range algorithms.Kinds {
			if of[k] == 0 {
				t.Errorf("no %s has %s", k, what)
			}
		}
	}
}

// TestTheJudgeKnowsWhatWasGivenBack: stores are out of reach, and replies are lost, while requests are
// refunded. In the end the judge counts as admitted what the stores count as used: neither a refund
// that did nothing nor one whose reply was lost leads it astray.
func TestTheJudgeKnowsWhatWasGivenBack(t *testing.T) {
	p := pair(1, hourly, nil, at(2, Steady, 6, of(0)), at(2, Steady, 6, of(1)),
		at(4, StoreDown, 8), at(13, Steady, 4, of(0)), at(13.5, ReplyLost, 0), at(14, ReplyLost, 0),
		at(14.5, ReplyLost, 0), at(15, ReplyLost, 0))
	p.Refunds = true
	w, err := newWorld(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.counts.Deeds = map[Deed]int64{}
	w.run(p.Heal)
	if w.broken != nil {
		t.Fatal(w.broken)
	}
	b := w.limits[0].buckets[0]
	var judged, used quantity.Units
	for _, units := range b.labels {
		judged += units
	}
	for _, r := range w.regions {
		held, known := r.store.inspect(b)
		if !known {
			t.Fatalf("%s is not open", r.name)
		}
		used += held.Used
	}
	if !b.refunded || w.counts.Deeds[ReplyLost] != 4 || judged != used || used == 0 {
		t.Errorf("the judge counts %d units, the stores %d", judged, used)
	}
}
