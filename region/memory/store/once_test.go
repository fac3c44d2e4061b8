package store

import (
	"reflect"
	"sync"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/quantity"
)

// once is a call that is to be charged once, on buckets of all kinds together.
func once(name string, cost quantity.Units) algorithms.Decide {
	c := algorithms.Decide{Fence: under(epoch), Commit: true, Costs: []quantity.Units{cost},
		Once: OnceKey(Whole, name)}
	for _, k := range algorithms.Kinds {
		c.Buckets = append(c.Buckets,
			algorithms.LimitTarget{Target: algorithms.Target{Key: BucketKey(Whole, string(k)),
				Terms: termsOf(k)}})
	}
	return c
}

// TestDecideOnceSoOften: a remembered answer is given a number of times and keeps its expiry.
// Beyond that number the call is charged like one without a key.
func TestDecideOnceSoOften(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, mate, client := node(t, server, first), node(t, server, first), fixtures.Operator(t,
			server)
		c := once("x", 1)
		d := decide(t, s, c)
		ends := endsAt(t, client, OnceKey(Whole, "x"))
		for i, want := range []struct {
			repeated, tooOften bool
			used               quantity.Units
		}{{true, false, 1}, {true, false, 1}, {true, false, 1}, {false, true, 2}, {false, true, 3}} {
			got := decide(t, []*Store{mate, s}[i%2], c)
			if got.Repeated != want.repeated || got.TooOften != want.tooOften ||
				admitted(got) != 1 || got.Buckets[0].Used != want.used {
				t.Errorf("time %d: %+v, want %+v", i+2, got, want)
			}
			if got.Repeated && got.Now != d.Now {
				t.Errorf("time %d: of %d, want %d", i+2, got.Now, d.Now)
			}
		}
		between(t, "the memory, not prolonged,", endsAt(t, client, OnceKey(Whole, "x")), ends, ends)
	})
}

// TestDecideOnce: an admitted call gets the same answer again and is not charged again, for about a
// minute. A denied call, and one that commits nothing, is not remembered.
func TestDecideOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, mate, client := node(t, server, first), node(t, server, first), fixtures.Operator(t,
			server)
		keys := []string{TokenKey(Whole)}
		peek := once("peek", 1)
		peek.Commit = false
		for range 2 {
			if d := decide(t, s, peek); d.Status != algorithms.StatusOK || admitted(d) != 1 ||
				d.Repeated {
				t.Errorf("a peek: %+v", d)
			}
			if d := decide(t, s, once("denied", 11)); d.Status != algorithms.StatusOK ||
				admitted(d) != 0 || d.Repeated {
				t.Errorf("a denial: %+v", d)
			}
		}
		holds(t, client, keys...)

		d := decide(t, s, once("x", 4))
		for _, k := range algorithms.Kinds {
			keys = append(keys, BucketKey(Whole, string(k)))
		}
		holds(t, client, append(keys, OnceKey(Whole, "x"))...)
		ends := endsAt(t, client, OnceKey(Whole, "x"))
		between(t, "the memory", ends, d.Now.Add(minuteLong), d.Now.Add(minuteLong))
		want := d
		want.Repeated = true
		for i, again := range []*Store{s, mate, s} {
			if got := decide(t, again, once("x", 4)); !reflect.DeepEqual(got, want) {
				t.Errorf("time %d: %+v\nwant %+v", i+2, got, want)
			}
		}
		between(t, "the memory, not prolonged,", endsAt(t, client, OnceKey(Whole, "x")), ends, ends)
		if d := decide(t, s, once("y", 4)); d.Repeated || admitted(d) != 1 ||
			d.Buckets[0].Used != 8 {
			t.Errorf("another call: %+v", d)
		}
		for _, k := range algorithms.Kinds {
			if got := inspect(t, s, string(k), termsOf(k)).Used; got != 8 {
				t.Errorf("%s: %d used by x and y, 4 each", k, got)
			}
		}
	})
}

// TestDecideOnceInAPipeline: of equal calls at the same time one is charged, in one round trip and
// in many.
func TestDecideOnceInAPipeline(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		var mu sync.Mutex
		fresh := 0
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for _, r := range s.Decide(t.Context(), []algorithms.Decide{once("x", 2), once("x", 2)}) {
					if r.Err != nil || admitted(r.Value) != 1 || r.Value.Buckets[0].Used != 2 {
						t.Errorf("%+v", r)
					}
					mu.Lock()
					if !r.Value.Repeated {
						fresh++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if got := inspect(t, s, "fixed_window", termsOf(algorithms.FixedWindow)).Used; fresh != 1 ||
			got != 2 {
			t.Errorf("%d of 4 calls were the first, %d used", fresh, got)
		}
	})
}
