//go:build !race

package sim

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// TestVariedSeedsHold: no seed breaks an invariant whose limits say what the other draws leave out.
func TestVariedSeedsHold(t *testing.T) {
	tally := holds(t, Hunt{Config: Config{Varied: true}, Seeds: suite.Short[uint64](50, 100)})
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

// TestTheJudgeKnowsWhatWasGivenBack: stores are out of reach, and replies are lost, while requests
// are refunded. In the end the judge counts as admitted what the stores count as used: neither a
// refund that did nothing nor one whose reply was lost leads it astray, nor one of which only the
// first of two shards has heard.
func TestTheJudgeKnowsWhatWasGivenBack(t *testing.T) {
	for _, shards := range []int{1, 2} {
		p := pair(1, hourly, nil, at(2, Steady, 6, of(0)), at(2, Steady, 6, of(1)),
			at(4, StoreDown, 8), at(13, Steady, 4, of(0)), at(13.5, ReplyLost, 0),
			at(14, ReplyLost, 0), at(14.5, ReplyLost, 0), at(15, ReplyLost, 0))
		p.Refunds, p.Shards = true, shards
		if shards > 1 {
			p.Document += strings.ReplaceAll(strings.Split(p.Document, "limits:\n")[1], "l0", "l1")
			p.Document = strings.Replace(p.Document, "[account]", "[address]", 1)
		}
		w, err := newWorld(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.counts.Deeds = map[Deed]int64{}
		w.run(p.Heal)
		if w.broken != nil {
			t.Fatal(w.broken)
		}
		met := map[store.Shard]bool{}
		for _, b := range w.concern("api", 0) {
			met[store.ShardOf(w.keyOf(b))] = true
			judged, used := countedOf(t, b)
			if !b.refunded || w.counts.Deeds[ReplyLost] != 4 || judged != used || used == 0 {
				t.Errorf("of %s the judge counts %d units, the stores %d", b.limit.policy.Name, judged,
					used)
			}
		}
		if len(met) != shards {
			t.Errorf("requests met %d shards", len(met))
		}
		w.close()
	}
}

// countedOf returns what the judge counts as admitted of a bucket, and what all stores count as
// used.
func countedOf(t *testing.T, b *bucket) (judged, used quantity.Units) {
	t.Helper()
	for _, units := range b.labels {
		judged += units
	}
	for _, r := range b.limit.w.regions {
		held, known := r.store.inspect(b)
		if !known {
			t.Fatalf("%s is not open", r.name)
		}
		used += held.Used
	}
	return judged, used
}
