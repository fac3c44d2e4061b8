package algorithms_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/quantity"
)

// TestPlainBucketsAreAnsweredInShort: simple items on plain buckets come back as three numbers each,
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

// TestOnePlainBucketDenies: a request that one of its plain buckets denies is charged to none of them.
func TestOnePlainBucketDenies(t *testing.T) {
	const token, hour = "{x}token", 3_600_000_000
	redis, now := fixtures.Operator(t, fixtures.Process(t)), time.Now().UnixMicro()
	err := redis.HSet(t.Context(), token, "generation", 1, "epoch", "e", "mark", now, "begun", now,
		"lost_at", 0).Err()
	if err != nil {
		t.Fatal(err)
	}
	decide := func(cost quantity.Units, limits ...quantity.Units) algorithms.Decided {
		var c algorithms.Items
		d := algorithms.Decide{Fence: algorithms.Fence{Generation: 1, Epoch: "e",
			Clock: quantity.StoreTime(now)}, Commit: true, Costs: []quantity.Units{cost}}
		for _, limit := range limits {
			d.Buckets = append(d.Buckets, algorithms.LimitTarget{Target: algorithms.Target{
				Key: fmt.Sprintf("{x}%d", limit), Terms: algorithms.Terms{
					Kind: algorithms.FixedWindow, Window: hour, Cell: hour, Tick: 1,
					Entitlement: limit}}})
		}
		c.Add(d)
		reply, err := redis.Eval(t.Context(), algorithms.DecideScript.Source,
			append([]string{token}, c.Keys()...), c.Args()...).Slice()
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Parse(any(reply))
		if err != nil {
			t.Fatal(err)
		}
		return all.Each[0]
	}
	for i, want := range []struct {
		admitted bool
		free     []quantity.Units // of the bucket of 5 and that of 3
	}{{true, []quantity.Units{3, 1}}, {false, []quantity.Units{3, 1}}, {false, []quantity.Units{3, 1}}} {
		d := decide(2, 5, 3)
		got := []quantity.Units{d.Buckets[0].Free, d.Buckets[1].Free}
		if d.Answers[0].Admitted != want.admitted || !slices.Equal(got, want.free) {
			t.Errorf("request %d: admitted %v, free %d, want %+v", i, d.Answers[0].Admitted, got, want)
		}
	}
	if d := decide(3, 5); !d.Answers[0].Admitted {
		t.Error("what was denied has spent units of another bucket")
	}
}
