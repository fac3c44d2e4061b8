package admit

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// lists makes a request of lists of one descriptor each.
func lists(all ...List) Request { return Request{Domain: "api", Lists: all} }

func listOf(name, value string, cost quantity.Units) List {
	return List{Entries: []policy.KeyValue{{Name: name, Value: value}}, Cost: cost}
}

// TestListsSpanShards: lists in two shards with costs of their own are charged both, or none; what
// was charged before the other denied is given back.
func TestListsSpanShards(t *testing.T) {
	for _, limits := range [][]string{{perAccount, perAddress}, {perAddress, perAccount}} {
		spanned(t, limits, func(t *testing.T, c *cluster, n *running) {
			ask := func(account, address quantity.Units) Decision {
				return n.check(t, lists(listOf("account", "42", account),
					listOf("address", "10.0.0.1", address)))
			}
			d := ask(7, 2)
			if !d.Allowed || len(d.Limits) != 2 || len(d.Met) != 2 {
				t.Fatalf("%+v", d)
			}
			for i, want := range []struct {
				limit      string
				left, cost quantity.Units
			}{{"per-account", 3, 7}, {"per-address", 3, 2}} {
				if len(d.Met[i].Limits) != 1 {
					t.Fatalf("list %d met %+v", i, d.Met[i])
				}
				if s := d.Limits[d.Met[i].Limits[0]]; s.Limit != want.limit || s.Remaining != want.left ||
					s.Cost != want.cost || !s.Admits || !s.Counted {
					t.Errorf("list %d: %+v, want %+v", i, s, want)
				}
			}
			n.wantUsed(t, 7, 2)
			if d := ask(2, 4); d.Allowed || d.Limit != "per-address" {
				t.Errorf("%+v", d)
			}
			if d := ask(4, 1); d.Allowed || d.Limit != "per-account" {
				t.Errorf("%+v", d)
			}
			n.wantUsed(t, 7, 2)
			if d := ask(3, 3); !d.Allowed {
				t.Errorf("%+v", d)
			}
			n.wantUsed(t, 10, 5)
		})
	}
}

// TestListsWithoutTheStore: each list costs its own of the node's part, and all or none are
// charged.
func TestListsWithoutTheStore(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: a, limit: 100, window: 1m, lending_limit: 0.5",
		"name: b, key: [b], limit: 100, window: 1m, lending_limit: 0.5"))
	ask := func(a, b quantity.Units) Decision {
		return n.askWithoutStore(lists(listOf("account", "1", a), listOf("b", "1", b)), true)
	}
	part := n.fits(t, Request{Domain: "api", Descriptors: map[string]string{"account": "other"}, Cost: 1}, 1000)
	if part < 10 {
		t.Fatalf("a part of %d", part)
	}
	total := quantity.Units(part)
	for i, step := range []struct {
		a, b  quantity.Units
		admit bool
	}{{total - 1, 1, true}, {2, 1, false}, {1, total, false}, {1, total - 1, true}, {1, 1, false}} {
		if d := ask(step.a, step.b); d.Allowed != step.admit {
			t.Errorf("step %d of a part of %d: %+v", i, part, d)
		}
	}
}

// TestListsAreChecked: what is wrong with lists is told before anything is charged.
func TestListsAreChecked(t *testing.T) {
	entry := []policy.KeyValue{{Name: "a", Value: "b"}}
	many := make([]List, MaxLists+1)
	for i := range many {
		many[i] = List{Entries: entry, Cost: 1}
	}
	for name, q := range map[string]Request{
		"no lists":        {Domain: "api", Lists: []List{}},
		"too many":        {Domain: "api", Lists: many},
		"no entries":      lists(List{Cost: 1}),
		"a negative cost": lists(List{Entries: entry, Cost: -1}),
		"a high cost":     lists(List{Entries: entry, Cost: 1<<51 + 1}),
		"with a map":      {Domain: "api", Lists: many[:1], Descriptors: map[string]string{"a": "b"}},
		"with an id":      {Domain: "api", Lists: many[:1], ID: "x"},
		"with a receipt":  {Domain: "api", Lists: many[:1], Receipt: true},
		"an empty name":   lists(listOf("", "b", 1)),
	} {
		if err := q.Validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := (Request{Domain: "api", Lists: many[:MaxLists]}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestNoLimitIsAChoice: what no limit applies to is allowed, allowed with a word in the log, or
// denied, and counted by domains that the document knows.
func TestNoLimitIsAChoice(t *testing.T) {
	d, err := policy.Parse("limits.yaml", []byte(`
version: 1
regions: {here: {weight: 1}}
on_no_limit: warn
domains: [{name: strict, on_no_limit: deny}, {name: open, on_no_limit: allow}]
limits: [{name: a, domain: api, key: [account], algorithm: fixed_window, limit: 10, window: 1m}]
exempt: [{domain: strict, entries: [{key: free}]}]
`))
	suite.Must(t, err)
	n := unstarted(t, 1, d)
	for domain, allowed := range map[string]bool{"strict": false, "open": true, "api": true, "elsewhere": true} {
		for _, q := range []Request{{Domain: domain, Descriptors: map[string]string{"x": "y"}, Cost: 1},
			{Domain: domain, Lists: []List{listOf("x", "y", 1)}}} {
			got, err := n.Check(t.Context(), q)
			if err != nil || got.Allowed != allowed || got.Reason != NoLimit || got.Epoch != d.Epoch().String() {
				t.Errorf("%s: %+v, %v", domain, got, err)
			}
		}
	}
	if got, err := n.Check(t.Context(), Request{Domain: "strict", Lists: []List{listOf("free", "y", 1)}}); err != nil || !got.Allowed {
		t.Errorf("what is exempt: %+v, %v", got, err)
	}
	for domain, want := range map[string]float64{"strict": 2, "open": 2, "api": 2, "": 2} {
		if got := testutil.ToFloat64(n.metrics.noLimit.WithLabelValues(domain)); got != want {
			t.Errorf("%s is counted %v times, want %v", fmt.Sprintf("%q", domain), got, want)
		}
	}
}
