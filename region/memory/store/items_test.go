package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestAnItemFailsAlone: of the decisions in one script call, one is about a key that another
// program wrote, and one has an impossible cost. The others are decided as if those were not there.
func TestAnItemFailsAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, first)
		suite.Must(t, fixtures.Operator(t, server).Set(t.Context(), BucketKey(Whole, "odd"), "another's",
			0).Err())
		both := charge("k", 10, 2)
		both.Buckets = append(both.Buckets, target("odd", 10))
		r := s.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1), charge("odd", 10, 1),
			both, charge("k", 10, 1, -1), charge("k", 10, 1)})
		for i, used := range map[int]quantity.Units{0: 1, 4: 2} {
			if d := must(t, r[i]); admitted(d) != 1 || d.Buckets[0].Used != used {
				t.Errorf("item %d: %+v, want %d used", i, d, used)
			}
		}
		for _, i := range []int{1, 2} {
			var e *Error
			if !errors.As(r[i].Err, &e) || e.Kind != "WRONGTYPE" || e.Ran || Unreached(e) {
				t.Errorf("item %d: %+v, want WRONGTYPE", i, r[i].Err)
			}
		}
		if !Answered(r[3].Err) || r[3].Value.Status != algorithms.StatusImplausible {
			t.Errorf("item 3: %+v, %v", r[3].Value, r[3].Err)
		}
		if used := inspect(t, s, "k", terms(10)).Used; used != 2 {
			t.Errorf("used %d, want 2", used)
		}
	})
}

// TestItemsOnSharedBuckets: decisions of one script call, each on one or two of three buckets, find
// what those before them left, and all of it is written.
func TestItemsOnSharedBuckets(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		var calls []algorithms.Decide
		for i := range 12 {
			c := charge(fmt.Sprint("k", i%3), 7, 1)
			c.Buckets = append(c.Buckets, target(fmt.Sprint("k", (i+1)%3), 7))
			calls = append(calls, c)
		}
		got := quantity.Units(0)
		for _, r := range s.Decide(t.Context(), calls) {
			got += admitted(must(t, r))
		}
		// Each takes of two of the three: 21 units are enough for 10.
		if got != 10 {
			t.Errorf("%d admitted, want 10", got)
		}
		for i, want := range []quantity.Units{7, 7, 6} {
			if used := inspect(t, s, fmt.Sprint("k", i), terms(7)).Used; used != want {
				t.Errorf("used %d of k%d, want %d", used, i, want)
			}
		}
	})
}

// TestDecisionsShareScriptCalls: a hundred decisions on plain buckets make two script calls.
func TestDecisionsShareScriptCalls(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		counted := &counting{Servers: s.servers}
		s.servers = counted
		var calls []algorithms.Decide
		for i := range algorithms.MaxItemsLoad + 36 {
			calls = append(calls, charge(fmt.Sprint(i), 10, 1))
		}
		for i, r := range s.Decide(t.Context(), calls) {
			if admitted(must(t, r)) != 1 {
				t.Errorf("call %d: %+v", i, r)
			}
		}
		if counted.calls != 2 {
			t.Errorf("%d script calls, want 2", counted.calls)
		}
	})
}

// TestCrowdedItemsAreLeftForAnotherCall: where decisions are much work, a script call leaves some
// of them, and they come with another one. Each is decided once.
func TestCrowdedItemsAreLeftForAnotherCall(t *testing.T) {
	st := &stage{b: t, Store: node(t, fixtures.Process(t), first)}
	model := bucket{"model", worstTerms(algorithms.FixedWindow)}
	crowded(st, model)
	var calls []algorithms.Decide
	for i := range algorithms.MaxItemsLoad {
		to := bucket{fmt.Sprint("copy ", i), model.terms}
		suite.Must(t, clientOf(st.Store).Copy(t.Context(), keyOf(model), keyOf(to), 0, true).Err())
		calls = append(calls, on(to.id, to.terms, 1))
	}
	used := inspect(t, st.Store, model.id, model.terms).Used
	counted := &counting{Servers: st.servers}
	st.servers = counted
	for i, r := range st.Decide(t.Context(), calls) {
		d := must(t, r)
		if admitted(d) != 1 || d.Buckets[0].Used != used+1 {
			t.Errorf("call %d: %+v", i, d)
		}
	}
	if counted.calls < 2 {
		t.Errorf("%d script calls: none was left", counted.calls)
	}
}

// counting counts script calls.
type counting struct {
	Servers
	calls int
}

// Exec implements Servers.
func (c *counting) Exec(ctx context.Context, calls []Call) []Reply {
	c.calls += len(calls)
	return c.Servers.Exec(ctx, calls)
}
