package rules_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/memory/rules"
)

// twoLimits are the rules of a document with two limits of an account.
func twoLimits(t testing.TB) *rules.Rules {
	return rulesOf(t, documents.Parse(t, 1, hereAndThere, "name: minute, limit: 100, window: 1m",
		"name: hour, limit: 1000, window: 1h, key: [account]"), "here")
}

// What a node holds of a bucket stands beside it, so a bucket must be found again: the same one, by
// what a request says and by its id.
func TestABucketIsFoundAgain(t *testing.T) {
	r := twoLimits(t)
	for i := range 1000 {
		domain, descriptors := of(strconv.Itoa(i))
		first, again := r.Match(domain, descriptors), r.Match(domain, descriptors)
		if len(first) != 2 || first[0].Limit.Name != "minute" || first[1].Limit.Name != "hour" {
			t.Fatalf("account %d: %v", i, first)
		}
		for n, a := range first {
			if again[n] != a || r.Found(a.Bucket.ID) != a {
				t.Fatalf("account %d: limit %s is made anew", i, a.Limit.Name)
			}
			if b := r.Find(a.Bucket.ID); b == nil || b.ID != a.Bucket.ID ||
				r.Key(b.ID) != a.Target.Key {
				t.Fatalf("account %d: limit %s: %+v", i, a.Limit.Name, b)
			}
		}
	}
	if r.Found("nobody's") != nil {
		t.Error("found what nobody asked for")
	}
}

// A bucket under another document is another, with an empty memory.
func TestAnotherDocumentHasOtherBuckets(t *testing.T) {
	a, b := twoLimits(t).Match(of("x")), twoLimits(t).Match(of("x"))
	if a[0] == b[0] || a[0].Bucket.ID != b[0].Bucket.ID {
		t.Error("a bucket is shared by two documents")
	}
}

// However many keys there are, a node holds MaxFound buckets at most, and those that are asked for
// again and again stay.
func TestFoundIsBounded(t *testing.T) {
	d := documents.Parse(t, 1, hereAndThere, "name: minute, limit: 100, window: 1m")
	r := rulesOf(t, d, "here")
	const hot, each = 200, 50
	kept := map[string]*rules.Applied{}
	for i := range hot {
		a := r.Match(of(fmt.Sprint("hot", i)))[0]
		kept[a.Bucket.ID] = a
	}
	var ids []string
	for i := range 3 * rules.MaxFound {
		a := r.Match(of(strconv.Itoa(i)))[0]
		ids = append(ids, a.Bucket.ID)
		if i%each == 0 {
			for h := range hot {
				r.Match(of(fmt.Sprint("hot", h)))
			}
		}
	}
	found, anew := 0, 0
	for _, id := range ids {
		if r.Found(id) != nil {
			found++
		}
	}
	for id, a := range kept {
		if r.Found(id) != a {
			anew++
		}
	}
	if found > rules.MaxFound || found < rules.MaxFound/2 {
		t.Errorf("%d of %d buckets are held, at most %d should be", found, len(ids), rules.MaxFound)
	}
	if anew > 0 {
		t.Errorf("%d of %d hot buckets were displaced", anew, hot)
	}
}

// Requests that ask for a bucket at the same time agree about it: at most two are made of it, and
// afterwards one is found.
func TestFoundTogether(t *testing.T) {
	r := twoLimits(t)
	const callers, keys = 8, 500
	var all [callers][keys]*rules.Applied
	var done sync.WaitGroup
	for c := range callers {
		done.Go(func() {
			for i := range keys {
				all[c][i] = r.Match(of(strconv.Itoa(i)))[0]
			}
		})
	}
	done.Wait()
	for i := range keys {
		a := r.Match(of(strconv.Itoa(i)))[0]
		if a != r.Match(of(strconv.Itoa(i)))[0] {
			t.Fatalf("account %d is made anew", i)
		}
		for c := range callers {
			if b := all[c][i]; b.Bucket.ID != a.Bucket.ID || b.Target.Key != a.Target.Key ||
				b.Hash != a.Hash {
				t.Fatalf("account %d: caller %d has %+v", i, c, b)
			}
		}
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	r := twoLimits(t)
	domain, descriptors := of("a")
	room := make([]*rules.Applied, 0, 4)
	r.Append(room, domain, descriptors)
	if n := testing.AllocsPerRun(1000, func() { r.Append(room, domain, descriptors) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkMatch finds the buckets of 10,000 keys by turns, which no cache near the processor holds.
func BenchmarkMatch(b *testing.B) {
	r := rulesOf(b, documents.Parse(b, 1, hereAndThere, "name: minute, limit: 100, window: 1m"), "here")
	keys := make([]map[string]string, 10_000)
	for i := range keys {
		_, keys[i] = of(fmt.Sprint("key", i*7919%len(keys)))
	}
	var room [4]*rules.Applied
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		r.Append(room[:0], "api", keys[i%len(keys)])
		i++
	}
}
