package admit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// numbered is a request on its way, told apart by its cost.
func numbered(r *rules.Rules, q Request, number quantity.Units, commit bool) waiting {
	w := waiting{rules: r, applied: r.Match(q.Domain, q.Descriptors), cost: number,
		commit: commit}
	w.hash = hashOf(w.applied)
	return w
}

// once makes a request one that is charged once.
func once(w waiting) waiting {
	w.once = "x"
	return w
}

func TestGroup(t *testing.T) {
	limits := []string{"name: minute, limit: 100, window: 1m",
		"name: address, key: [account, address], limit: 10, window: 1s"}
	old := rulesOf(t, documents.Parse(t, 1, hereAndThere, limits...), "here")
	newer := rulesOf(t, documents.Parse(t, 2, hereAndThere, limits...), "here")
	a, b := request("a"), request("b")
	both := Request{Domain: "api", Descriptors: map[string]string{"account": "a", "address": "x"}}
	for _, tc := range []struct {
		name  string
		batch []waiting
		want  [][]quantity.Units
	}{
		{"nothing", nil, nil},
		{"one bucket, in order of arrival", []waiting{numbered(old, a, 3, true),
			numbered(old, a, 1, true), numbered(old, a, 2, true)},
			[][]quantity.Units{{3, 1, 2}}},
		{"two buckets, interleaved", []waiting{numbered(old, a, 1, true), numbered(old, b, 2, true),
			numbered(old, a, 3, true), numbered(old, b, 4, true)},
			[][]quantity.Units{{1, 3}, {2, 4}}},
		{"one epoch after the other", []waiting{numbered(old, a, 1, true),
			numbered(newer, a, 2, true), numbered(old, a, 3, true)},
			[][]quantity.Units{{1, 3}, {2}}},
		{"a peek among checks", []waiting{numbered(old, a, 1, true), numbered(old, a, 2, false),
			numbered(old, a, 3, true)},
			[][]quantity.Units{{1, 3}, {2}}},
		{"who is charged once is decided alone", []waiting{numbered(old, a, 1, true),
			once(numbered(old, a, 2, true)), numbered(old, a, 3, true),
			once(numbered(old, a, 4, true)), numbered(old, a, 5, true)},
			[][]quantity.Units{{1, 3, 5}, {2}, {4}}},
		{"and lends its place to nobody", []waiting{once(numbered(old, a, 1, true)),
			numbered(old, a, 2, true), numbered(old, a, 3, true)},
			[][]quantity.Units{{1}, {2, 3}}},
		{"nor does a peek", []waiting{numbered(old, a, 1, false), numbered(old, a, 2, false),
			numbered(old, a, 3, true)}, [][]quantity.Units{{1}, {2}, {3}}},
		{"more buckets than another", []waiting{numbered(old, a, 1, true),
			numbered(old, both, 2, true), numbered(old, both, 3, true)},
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
					if w.cost != tc.want[i][n] {
						t.Errorf("group %d, place %d: request %d, want %d", i, n, w.cost,
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
	r := rulesOf(t, documents.Parse(t, 1, hereAndThere,
		"name: minute, limit: 100, window: 1m",
		"name: minute, limit: 1000, window: 1m, match: {plan: pro}"), "here")
	pro := Request{Domain: "api", Descriptors: map[string]string{"account": "a", "plan": "pro"}}
	plain, paid := numbered(r, request("a"), 1, true), numbered(r, pro, 2, true)
	if plain.applied[0].Target.Key == paid.applied[0].Target.Key {
		t.Error("two limits count in one bucket")
	}
	if groups := group([]waiting{plain, paid}); len(groups) != 2 {
		t.Errorf("%d groups, want 2", len(groups))
	}
}

// first takes the request that would be carried first.
func (b *batcher) first(t *testing.T) waiting {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	leaf := b.fair.next()
	if leaf == nil {
		t.Fatal("nothing waits")
	}
	return b.fair.drop(leaf)
}

// fill has the queue hold all that it may, all of one bucket.
func (n *Limiter) fill(t *testing.T, q Request) {
	t.Helper()
	r := n.tenure.Rules()
	w := waiting{rules: r, applied: r.Match(q.Domain, q.Descriptors), cost: 1, commit: true}.waits(time.Minute)
	for range queueLength {
		if err := n.queue.lanes.all[0].enqueue(t.Context(), w); err != nil {
			t.Fatal("the queue is shorter than queueLength")
		}
	}
}

func TestQueueFull(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: minute, limit: 100, window: 1m"))
	n.fill(t, request("a"))
	var full *Overload
	if d, err := n.Check(t.Context(), request("a")); !errors.As(err, &full) || full.Retry <= 0 {
		t.Errorf("decision %+v, %v", d, err)
	}
	all, err := n.CheckBatch(t.Context(), []Request{request("a")})
	if d := append(all, Decision{})[0]; err != nil || d.Allowed || !d.Undecided || d.Reason != QueueFull || d.Limit != "minute" ||
		d.Entitlement != 40 || d.Sequence != 1 || d.RetryAfter <= 0 {
		t.Errorf("in a batch: %+v, %v", d, err)
	}
	if l := n.queue.lanes.all[0].load(); l.Queued != queueLength || l.Refused != (Refused{Full: 2}) {
		t.Errorf("%+v", l)
	}
	if d, err := n.Check(t.Context(), Request{Domain: "other", Cost: 1}); err != nil || !d.Allowed ||
		d.Reason != NoLimit {
		t.Errorf("a request that needs no store: %+v, %v", d, err)
	}
	var field *FieldError
	if _, err = n.Check(t.Context(), Request{Domain: "api"}); !errors.As(err, &field) {
		t.Errorf("a wrong request: %v", err)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: minute, limit: 100, window: 1m"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := n.Check(ctx, request("a"))
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		w := n.queue.lanes.all[0].first(t)
		w.answer <- answered{} // so that serving the request later does not block
	})
}

// Peeks that share a batch do not see each other's costs.
func TestPeeksDoNotCountEachOther(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 5, window: 1m")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		r := n.tenure.Rules()
		answers := make([]chan answered, 3)
		var batch []waiting
		for i := range answers {
			answers[i] = make(chan answered, 1)
			batch = append(batch, waiting{rules: r, applied: r.Match(asked(request("a"))), cost: 4,
				answer: answers[i]})
		}
		n.queue.lanes.all[0].decide(t.Context(), batch)
		for i := range answers {
			if d := n.judge(&way{waiting: batch[i]}, <-answers[i]); !d.Allowed || d.Remaining != 1 {
				t.Errorf("peek %d of 4 units of 5, nothing used: allowed %v, remaining %d", i,
					d.Allowed, d.Remaining)
			}
		}
	})
}

// A full queue denies nothing that only shadow limits apply to.
func TestQueueFullOfAShadowLimit(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: watch, limit: 10, window: 1s, shadow: true"))
	n.fill(t, request("a"))
	if d, err := n.Check(t.Context(), request("a")); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}
