package queue

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// numbered is a request on its way, told apart by its cost.
func numbered(w Ask, number quantity.Units, commit bool) Ask {
	w.Cost, w.Commit, w.hash = number, commit, hashOf(w.Applied)
	return w
}

// once makes a request one that is charged once.
func once(w Ask) Ask {
	w.Once = "x"
	return w
}

func TestGroup(t *testing.T) {
	limits := []string{"name: minute, limit: 100, window: 1m",
		"name: address, key: [account, address], limit: 10, window: 1s"}
	old := rulesOf(t, 1, nil, limits...)
	a, b, newer := ask(old, "a"), ask(old, "b"), ask(rulesOf(t, 2, nil, limits...), "a")
	both := Ask{Rules: old, Applied: old.Match("api", map[string]string{"account": "a", "address": "x"})}
	for _, tc := range []struct {
		name  string
		batch []Ask
		want  [][]quantity.Units
	}{
		{"nothing", nil, nil},
		{"one bucket, in order of arrival", []Ask{numbered(a, 3, true),
			numbered(a, 1, true), numbered(a, 2, true)},
			[][]quantity.Units{{3, 1, 2}}},
		{"two buckets, interleaved", []Ask{numbered(a, 1, true), numbered(b, 2, true),
			numbered(a, 3, true), numbered(b, 4, true)},
			[][]quantity.Units{{1, 3}, {2, 4}}},
		{"one epoch after the other", []Ask{numbered(a, 1, true),
			numbered(newer, 2, true), numbered(a, 3, true)},
			[][]quantity.Units{{1, 3}, {2}}},
		{"a peek among checks", []Ask{numbered(a, 1, true), numbered(a, 2, false),
			numbered(a, 3, true)},
			[][]quantity.Units{{1, 3}, {2}}},
		{"who is charged once is decided alone", []Ask{numbered(a, 1, true),
			once(numbered(a, 2, true)), numbered(a, 3, true),
			once(numbered(a, 4, true)), numbered(a, 5, true)},
			[][]quantity.Units{{1, 3, 5}, {2}, {4}}},
		{"and lends its place to nobody", []Ask{once(numbered(a, 1, true)),
			numbered(a, 2, true), numbered(a, 3, true)},
			[][]quantity.Units{{1}, {2, 3}}},
		{"nor does a peek", []Ask{numbered(a, 1, false), numbered(a, 2, false),
			numbered(a, 3, true)}, [][]quantity.Units{{1}, {2}, {3}}},
		{"more buckets than another", []Ask{numbered(a, 1, true),
			numbered(both, 2, true), numbered(both, 3, true)},
			[][]quantity.Units{{1}, {2, 3}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			groups := group(tc.batch)
			if len(groups) != len(tc.want) {
				t.Fatalf("%d groups, want %v", len(groups), tc.want)
			}
			for i, g := range groups {
				if len(g) != len(tc.want[i]) {
					t.Fatalf("group %d has %d requests, want %v", i, len(g), tc.want[i])
				}
				for n, w := range g {
					if w.Cost != tc.want[i][n] {
						t.Errorf("group %d, place %d: request %d, want %d", i, n, w.Cost,
							tc.want[i][n])
					}
				}
			}
		})
	}
}

// Entries of one name differ in their limits: each counts in buckets of its own, and in script
// calls of its own.
func TestGroupSeparatesEntriesOfOneName(t *testing.T) {
	r := rulesOf(t, 1, nil, "name: minute, limit: 100, window: 1m",
		"name: minute, limit: 1000, window: 1m, match: {plan: pro}")
	pro := Ask{Rules: r, Applied: r.Match("api", map[string]string{"account": "a", "plan": "pro"})}
	plain, paid := numbered(ask(r, "a"), 1, true), numbered(pro, 2, true)
	if plain.Applied[0].Target.Key == paid.Applied[0].Target.Key {
		t.Error("two limits count in one bucket")
	}
	if groups := group([]Ask{plain, paid}); len(groups) != 2 {
		t.Errorf("%d groups, want 2", len(groups))
	}
}

// first takes the request that would be carried first.
func (b *batcher) first(t *testing.T) Ask {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	leaf := b.fair.next()
	if leaf == nil {
		t.Fatal("nothing waits")
	}
	return b.fair.drop(leaf)
}

// Peeks that share a batch do not see each other's costs.
func TestPeeksDoNotCountEachOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, _ := lab.NewTwin(now, "a").Connect(time.Now)
		n := on(t, s, "name: minute, limit: 5, window: 1m")
		n.opened(t)
		var batch []Ask
		for range 3 {
			w := n.of("a")
			w.Cost, w.Commit = 4, false
			batch = append(batch, w)
		}
		said, errs := n.DecideAll(t.Context(), batch)
		for i, a := range said {
			if errs[i] != nil || !a.Admitted() || a.Own().Verdicts[0].Remaining != 1 {
				t.Errorf("peek %d of 4 units of 5, nothing used: %+v, %v", i, a, errs[i])
			}
		}
	})
}

// TestGroupsAreCapped: what one script call carries is bounded, and nobody is left out or
// overtaken.
func TestGroupsAreCapped(t *testing.T) {
	limit := &rules.Applied{Target: algorithms.LimitTarget{Target: algorithms.Target{Key: "k",
		Terms: algorithms.Terms{Kind: algorithms.SlidingWindowLog}}}}
	limit.Limit = ask(rulesOf(t, 1, nil, "name: log, algorithm: sliding_window_log, limit: 100, window: 1m"), "a").Applied[0].Limit
	var batch []Ask
	r := &rules.Rules{}
	for i := range 1000 {
		batch = append(batch, Ask{Rules: r, Applied: []*rules.Applied{limit},
			Commit: true, Cost: quantity.Units(i%97 + 1)})
	}
	n := 0
	for _, g := range group(batch) {
		var costs []quantity.Units
		for _, w := range g {
			if w.Cost != batch[n].Cost {
				t.Fatalf("request %d has cost %d, not %d", n, w.Cost, batch[n].Cost)
			}
			costs, n = append(costs, w.Cost), n+1
		}
		if len(g)*4 > algorithms.MaxCosts || len(g) > 33 {
			t.Errorf("%d requests in one call: %v", len(g), costs)
		}
	}
	if n != len(batch) {
		t.Errorf("%d of %d requests are in a group", n, len(batch))
	}
}
