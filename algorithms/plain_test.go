//go:build !race

package algorithms_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestPlainBucketsAreAnsweredInShort: simple items on plain buckets come back as three numbers
// each, whatever their number; of a bucket with rows comes all that belongs to a decision.
func TestPlainBucketsAreAnsweredInShort(t *testing.T) {
	const buckets = 5
	s := newPlainStore(t)
	redis, now := s.redis, s.now
	for kind, terms := range map[algorithms.Kind]algorithms.Terms{
		algorithms.FixedWindow: {Window: 3_600_000_000, Cell: 3_600_000_000, Tick: 1},
		algorithms.SlidingWindowCounter: {Window: 3_600_000_000, Cell: 3_600_000_000,
			Tick: 60_000, ClockMargin: 100_000},
		algorithms.TokenBucket: {Window: 60_000_000, Cell: 60_000_000, Tick: 60, Burst: 100},
	} {
		terms.Kind, terms.Entitlement = kind, 100
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
				append([]string{plainToken}, c.Keys()...), c.Args()...).Slice()
			// After the time and the lag: three numbers each. One bucket has rows in the second
			// round.
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

// plainStore is a Redis with an open token, and the time at which it was opened.
type plainStore struct {
	t     *testing.T
	redis *redis.Client
	now   int64
}

const plainToken, anHour = "{x}token", 3_600_000_000

func newPlainStore(t *testing.T) plainStore {
	s := plainStore{t, fixtures.Operator(t, fixtures.Process(t)), time.Now().UnixMicro()}
	suite.Must(t, s.redis.HSet(t.Context(), plainToken, "generation", 1, "epoch", "e", "mark", s.now,
		"begun", s.now, "lost_at", 0).Err())
	return s
}

// decide charges a cost to buckets, as one item.
func (s plainStore) decide(cost quantity.Units, targets ...algorithms.Target) algorithms.Decided {
	s.t.Helper()
	d, _ := s.decideAll([]quantity.Units{cost}, targets...)
	return d
}

// decideAll charges costs to buckets, as one item. It also returns how many numbers the reply has.
func (s plainStore) decideAll(costs []quantity.Units,
	targets ...algorithms.Target) (decided algorithms.Decided, numbers int) {
	s.t.Helper()
	d := algorithms.Decide{Fence: algorithms.Fence{Generation: 1, Epoch: "e",
		Clock: quantity.StoreTime(s.now)}, Commit: true, Costs: costs}
	for _, one := range targets {
		d.Buckets = append(d.Buckets, algorithms.LimitTarget{Target: one})
	}
	var c algorithms.Items
	c.Add(d)
	reply, err := s.redis.Eval(s.t.Context(), algorithms.DecideScript.Source,
		append([]string{plainToken}, c.Keys()...), c.Args()...).Slice()
	suite.Must(s.t, err)
	all, err := c.Parse(any(reply))
	suite.Must(s.t, err)
	return all.Each[0], len(reply)
}

// TestOneCostSeveralTimes: requests of one cost on a plain bucket that has room for all of them are
// charged by one sum, and answered as if one came after the other. Where only some of them fit,
// those are admitted.
func TestOneCostSeveralTimes(t *testing.T) {
	s := newPlainStore(t)
	for kind, denied := range map[algorithms.Kind]int{algorithms.FixedWindow: 2 + 3,
		algorithms.SlidingWindowCounter: 2 + 3 + 3*4 + 10 + 1, algorithms.TokenBucket: 2 + 3 + 3*4 + 10 + 1} {
		target := algorithms.Target{Key: fmt.Sprintf("{x}%s", kind), Terms: algorithms.Terms{Kind: kind,
			Window: anHour, Cell: anHour, Tick: 60_000, Entitlement: 10, Burst: 10}}
		for round, want := range []struct {
			costs, left []quantity.Units
			admitted    []bool
			numbers     int
		}{
			{[]quantity.Units{2, 2, 2}, []quantity.Units{8, 6, 4}, []bool{true, true, true}, 2 + 3},
			{[]quantity.Units{2, 1}, []quantity.Units{2, 1}, []bool{true, true}, 2 + 3 + 2*4 + 10},
			{[]quantity.Units{1, 1, 1}, []quantity.Units{0, 0, 0}, []bool{true, false, false},
				2 + 1 + 3 + 3*4 + 10},
			{[]quantity.Units{1, 1, 1}, []quantity.Units{0, 0, 0}, []bool{false, false, false}, denied},
		} {
			d, numbers := s.decideAll(want.costs, target)
			var left []quantity.Units
			var admitted []bool
			for _, a := range d.Answers {
				left, admitted = append(left, a.Verdicts[0].Remaining), append(admitted, a.Admitted)
				if retry := a.Verdicts[0].Retry; a.Admitted != (retry == 0) {
					t.Errorf("%s, round %d: admitted %v, retry after %d", kind, round, a.Admitted, retry)
				}
			}
			if !slices.Equal(left, want.left) || !slices.Equal(admitted, want.admitted) {
				t.Errorf("%s, round %d: admitted %v, left %d, want %v, %d", kind, round, admitted, left,
					want.admitted, want.left)
			}
			if free := d.Buckets[0].Free; free != left[len(left)-1] || numbers != want.numbers {
				t.Errorf("%s, round %d: %d free, %d numbers, want %d, %d", kind, round, free, numbers,
					left[len(left)-1], want.numbers)
			}
		}
	}
}

// TestPlainBucketsOfAClass: simple items of one part on one plain bucket come back as short, up to
// that part. What no longer fits is decided behind, but for a window, which says at once when it
// does.
func TestPlainBucketsOfAClass(t *testing.T) {
	s := newPlainStore(t)
	const short = 2 + 3
	for kind, denied := range map[algorithms.Kind]int{algorithms.FixedWindow: short,
		algorithms.SlidingWindowCounter: short - 3 + 1 + 3 + 4 + 10, algorithms.TokenBucket: short - 3 + 1 + 3 + 4 + 10} {
		target := algorithms.LimitTarget{Target: algorithms.Target{Key: fmt.Sprintf("{x}%s", kind), Terms: algorithms.Terms{Kind: kind,
			Window: anHour, Cell: anHour, Tick: 60_000, Entitlement: 10, Burst: 10}}}
		for round, want := range []struct {
			part     quantity.PPM
			costs    []quantity.Units
			admitted bool
			numbers  int
		}{
			{600_000, []quantity.Units{2, 2}, true, short},
			{600_000, []quantity.Units{2}, true, short},
			{600_000, []quantity.Units{1}, false, denied},
			{900_000, []quantity.Units{3}, true, short},
			{950_000, []quantity.Units{1}, false, denied},
			{algorithms.Whole, []quantity.Units{1}, true, short - 3 + 1 + 3 + 4 + 10 - 1},
		} {
			var c algorithms.Items
			c.Add(algorithms.Decide{Fence: algorithms.Fence{Generation: 1, Epoch: "e", Clock: quantity.StoreTime(s.now)}, Commit: true,
				Costs: want.costs, Parts: slices.Repeat([]quantity.PPM{want.part}, len(want.costs)), Buckets: []algorithms.LimitTarget{target}})
			reply, err := s.redis.Eval(t.Context(), algorithms.DecideScript.Source, append([]string{plainToken}, c.Keys()...),
				c.Args()...).Slice()
			suite.Must(t, err)
			all, err := c.Parse(any(reply))
			suite.Must(t, err)
			for i, a := range all.Each[0].Answers {
				if a.Admitted != want.admitted || a.Admitted != (a.Verdicts[0].Retry == 0) {
					t.Errorf("%s, round %d, request %d: %+v", kind, round, i, a)
				}
			}
			if len(reply) != want.numbers {
				t.Errorf("%s, round %d: %d numbers, want %d", kind, round, len(reply), want.numbers)
			}
		}
	}
}

// TestRunsOfSimpleItems: items that differ in the bucket alone are told as one, and only those. Each
// is decided for itself, by its own cost, limit and knowledge.
func TestRunsOfSimpleItems(t *testing.T) {
	s := newPlainStore(t)
	var c algorithms.Items
	var want []quantity.Units // free afterwards
	on := func(limit quantity.Units, known quantity.StoreTime) algorithms.LimitTarget {
		return algorithms.LimitTarget{Target: algorithms.Target{
			Key: fmt.Sprintf("{x}%d", len(want)), ExistsUntil: known, Terms: algorithms.Terms{
				Kind: algorithms.FixedWindow, Window: anHour, Cell: anHour, Tick: 1, Entitlement: limit}}}
	}
	add := func(cost, free quantity.Units, buckets ...algorithms.LimitTarget) {
		c.Add(algorithms.Decide{Fence: algorithms.Fence{Generation: 1, Epoch: "e",
			Clock: quantity.StoreTime(s.now)}, Commit: true,
			Costs: []quantity.Units{cost}, Buckets: buckets})
		want = append(want, free)
	}
	later := quantity.StoreTime(s.now + anHour)
	add(1, 99, on(100, 0))
	add(1, 99, on(100, 0))
	add(5, 95, on(100, 0))
	add(5, 45, on(50, 0))
	add(5, 0, on(50, later)) // it is missing
	add(2, 48, on(50, 0), algorithms.LimitTarget{Target: algorithms.Target{Key: "{x}other",
		Terms: on(50, 0).Terms}})
	add(2, 48, on(50, 0))
	reply, err := s.redis.Eval(t.Context(), algorithms.DecideScript.Source,
		append([]string{plainToken}, c.Keys()...), c.Args()...).Slice()
	suite.Must(t, err)
	all, err := c.Parse(any(reply))
	suite.Must(t, err)
	for i, d := range all.Each {
		if d.Buckets[0].Free != want[i] {
			t.Errorf("item %d: %d free, want %d: %+v", i, d.Buckets[0].Free, want[i], d)
		}
	}
	var one, alike algorithms.Items
	one.Add(c.Each[0])
	for _, d := range c.Each[:2] {
		alike.Add(d)
	}
	if a, b := len(alike.Args()), len(one.Args()); a != b {
		t.Errorf("%d arguments for two items that differ in the bucket alone, want %d", a, b)
	}
}

// TestADeletedPlainBucket: a bucket that is missing although its node knows that it still weighs is
// not taken for a new one.
func TestADeletedPlainBucket(t *testing.T) {
	s := newPlainStore(t)
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
		algorithms.TokenBucket} {
		for existsUntil, want := range map[int64]bool{0: true, s.now + anHour: false} {
			d := s.decide(1, algorithms.Target{Key: fmt.Sprintf("{x}%s%v", kind, want),
				ExistsUntil: quantity.StoreTime(existsUntil), Terms: algorithms.Terms{Kind: kind,
					Window: anHour, Cell: anHour, Tick: 60_000, Entitlement: 100, Burst: 100}})
			if d.Answers[0].Admitted != want {
				t.Errorf("%s, known until %d: %+v, want admitted %v", kind, existsUntil, d, want)
			}
		}
	}
}

// TestOnePlainBucketDenies: a request that one of its plain buckets denies is charged to none of
// them.
func TestOnePlainBucketDenies(t *testing.T) {
	s := newPlainStore(t)
	of := func(limit quantity.Units) algorithms.Target {
		return algorithms.Target{Key: fmt.Sprintf("{x}%d", limit), Terms: algorithms.Terms{
			Kind: algorithms.FixedWindow, Window: anHour, Cell: anHour, Tick: 1, Entitlement: limit}}
	}
	for i, admitted := range []bool{true, false, false} {
		d := s.decide(2, of(5), of(3))
		got := []quantity.Units{d.Buckets[0].Free, d.Buckets[1].Free}
		if d.Answers[0].Admitted != admitted || !slices.Equal(got, []quantity.Units{3, 1}) {
			t.Errorf("request %d: admitted %v, free %d, want %v, 3 and 1", i, d.Answers[0].Admitted, got,
				admitted)
		}
	}
	if d := s.decide(3, of(5)); !d.Answers[0].Admitted {
		t.Error("what was denied has spent units of another bucket")
	}
}

// TestOneLentBucketOfSeveral: a request is charged once to each of its buckets, also where one of
// them has rows and those before it do not.
func TestOneLentBucketOfSeveral(t *testing.T) {
	s := newPlainStore(t)
	for kind, tick := range map[algorithms.Kind]int64{algorithms.FixedWindow: 1,
		algorithms.SlidingWindowCounter: 60_000, algorithms.TokenBucket: 60_000} {
		on := func(name string) algorithms.Target {
			return algorithms.Target{Key: fmt.Sprintf("{x}%s %s", kind, name), Terms: algorithms.Terms{
				Kind: kind, Window: anHour, Cell: anHour, Tick: tick, Entitlement: 100, Burst: 100}}
		}
		s.decide(1, on("lent"))
		suite.Must(t, s.redis.HSet(t.Context(), on("lent").Key, "rows",
			fmt.Sprintf("@%d 0 0 0 0 0 0;", s.now/anHour)).Err())
		for round := range quantity.Units(3) {
			d := s.decide(5, on("plain"), on("lent"))
			if got := []quantity.Units{d.Buckets[0].Free, d.Buckets[1].Free}; !slices.Equal(got,
				[]quantity.Units{95 - 5*round, 94 - 5*round}) {
				t.Errorf("%s, round %d: free %d, want %d and %d", kind, round, got, 95-5*round, 94-5*round)
			}
		}
	}
}
