package algorithms_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/quantity"
)

// TestPlainBucketsAreAnsweredInShort: single items on plain buckets come back as three numbers each,
// whatever their number; of a bucket with rows comes all that belongs to a decision.
func TestPlainBucketsAreAnsweredInShort(t *testing.T) {
	const token, buckets = "{x}token", 5
	redis, now := fixtures.Operator(t, fixtures.Process(t)), time.Now().UnixMicro()
	for kind, terms := range map[algorithms.Kind]algorithms.Terms{
		algorithms.FixedWindow: {Window: 3_600_000_000, Cell: 3_600_000_000, Tick: 1},
		algorithms.SlidingWindowCounter: {Window: 3_600_000_000, Cell: 3_600_000_000,
			Tick: 60_000, ClockMargin: 100_000},
		algorithms.TokenBucket: {Window: 60_000_000, Cell: 60_000_000, Tick: 60, Burst: 100},
	} {
		terms.Kind, terms.Entitlement = kind, 100
		did := redis.HSet(t.Context(), token, "generation", 1, "epoch", "e", "mark", now, "begun", now,
			"lost_at", 0)
		if did.Err() != nil {
			t.Fatal(did.Err())
		}
		for round := range 2 {
			var c algorithms.Items
			for i := range buckets {
				c.Add(algorithms.Decide{Fence: algorithms.Fence{Generation: 1, Epoch: "e",
					Clock: quantity.StoreTime(now)}, Commit: true,
					Costs: []quantity.Units{1}, Buckets: []algorithms.LimitTarget{{
						Target: algorithms.Target{Key: fmt.Sprintf("{x}%s%d", kind, i),
							Terms: terms}}}})
			}
			reply, err := redis.Eval(t.Context(), algorithms.DecideScript.Source,
				append([]string{token}, c.Keys()...), c.Args()...).Slice()
			// After the time and the lag: three numbers each. One bucket has rows in the second round.
			want := 2 + 3*buckets
			if round == 1 {
				want = 2 + 3*(buckets-1) + 1 + 3 + 4 + 10
			}
			if err != nil || len(reply) != want {
				t.Fatalf("%s, round %d: %d numbers, want %d: %v, %v", kind, round, len(reply), want,
					reply, err)
			}
			d, err := c.Parse(any(reply))
			for i, one := range d.Each {
				if err != nil || !one.Answers[0].Admitted ||
					one.Buckets[0].Free != quantity.Units(99-round) {
					t.Errorf("%s, round %d, bucket %d: %+v, %v", kind, round, i, one, err)
				}
			}
			rows := fmt.Sprintf("@%d 0 0 0 0 0 0;", now/terms.Cell)
			if err := redis.HSet(t.Context(), fmt.Sprintf("{x}%s2", kind), "rows",
				rows).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
