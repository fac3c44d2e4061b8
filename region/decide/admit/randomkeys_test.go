package admit

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// bytesOfA is what the bucket of account "a" takes in the meter.
const bytesOfA = fallbackRecordBytes + len("7:account,1:a,")

// In an outage 100,350 random keys once made the node deny every new key. Now they take only some
// of the memory, and each key has its own part, which it spends once.
func TestRandomKeysInAnOutage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: minute, limit: 100, window: 1m, lending_limit: 0"))
		n.askWithoutStore(request("old"), true)
		const keys = 100_350
		for i := range keys {
			if !n.askWithoutStore(request(fmt.Sprintf("random-%d", i)), true).Allowed {
				t.Fatalf("random key %d is denied", i)
			}
		}
		if got := n.fits(t, request("new"), 100); got != 40 {
			t.Errorf("%d admitted of a new key, its part is 40", got)
		}
		if got := n.fits(t, request("old"), 100); got != 39 {
			t.Errorf("%d more admitted of a key that was there before, 39 are left of its part",
				got)
		}
		s := n.fallback.Status()
		if s.Buckets != keys+2 || s.Units != keys+80 || s.Unbooked != keys+80 || s.Refused != 0 ||
			s.Bytes > maxFallbackBytes/8 {
			t.Errorf("%+v", s)
		}
	})
}

// Whatever the ids of buckets are, the meter says of each what a plain map of all of them says.
func TestFallbackAgainstAPlainMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		a := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: minute, limit: 25, window: 1m, lending_limit: 0")).tenure.Rules().Match(asked(request("a")))[0]
		f, plain, now := newFallback(LocalConfig{}), map[string]quantity.Units{}, time.Unix(6_000_000, 0)
		for range 3000 {
			now = now.Add(time.Duration(random.IntN(40)) * time.Millisecond)
			one := a
			b := *a.Bucket
			one.Bucket = &b
			switch id := random.IntN(60); random.IntN(3) {
			case 0:
				one.Bucket.ID += fmt.Sprint(id)
			case 1:
				one.Bucket.ID = fmt.Sprint("not a row of netstrings:", id)
			case 2:
				one.Bucket.ID = string(make([]byte, id))
			}
			cost := quantity.Units(1 + random.Int64N(4))
			m := f.take(one, cost, true, now)
			key := fmt.Sprint(one.Bucket.ID, now.Unix()/60)
			if want := plain[key]+cost <= 10; m.room != want {
				t.Fatalf("seed %d: room %v for %d after %d of 10", seed, m.room, cost, plain[key])
			}
			if !m.room {
				continue
			}
			if plain[key] += cost; random.IntN(10) == 0 {
				f.giveBack(one, cost, m.window)
				plain[key] -= cost
			}
		}
		told := map[string]quantity.Units{}
		for _, b := range f.unsettled(1 << 20) {
			told[fmt.Sprint(b.bucket, b.window)] += b.units
		}
		for key, units := range plain {
			if told[key] != units {
				t.Fatalf("seed %d: the store is told of %d units of %q, spent were %d", seed,
					told[key], key, units)
			}
		}
	}
}

// claimsAtMost limits the claims that a node's journal keeps on single buckets, and returns the
// node's claims.
func (n *running) claimsAtMost(most int) *claims {
	c := newClaims(n.journal, n.config.Now, n.deadline, n.log)
	c.most = most
	n.fallback.claims = c
	return c
}

// When the journal holds as many claims on single buckets as it may, it claims the limit's whole
// window. Started again, the node then spends nothing of that limit in that window. Other limits
// and windows are not affected.
func TestALifeSpendsNoPartTwiceOfVeryManyBuckets(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m, lending_limit: 0.5",
		"name: other, domain: other, limit: 100, window: 1m, lending_limit: 0.5")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		n.claimsAtMost(10)
		const buckets = 40
		name := func(i int) Request { return request(fmt.Sprintf("account-%d", i)) }
		other := request("account-0")
		other.Domain = "other"
		for i := range buckets {
			if got := n.fits(t, name(i), 3); got != 3 {
				t.Fatalf("bucket %d: %d of 3 admitted", i, got)
			}
		}
		if got := n.journal.Stats().Checkpoints; got != 11 {
			t.Errorf("%d claims in the journal, want 10 and one of the whole window", got)
		}
		for life := range 2 {
			c.stop("us/n1")
			n = c.start("us/n1", d)
			for i := range buckets + 1 { // one more than was spent of: the node cannot know that
				if got := n.fits(t, name(i), 1); got != 0 {
					t.Errorf("life %d admits of bucket %d, of whose limit the whole window is claimed", life+2, i)
				}
			}
		}
		if got := n.fits(t, other, 100); got != 50 {
			t.Errorf("%d admitted of another limit, want 50", got)
		}
		time.Sleep(time.Minute)
		if got := n.fits(t, name(0), 100); got != 50 {
			t.Errorf("%d admitted in the next window, want 50", got)
		}
	})
}

// A life that claims a whole window still spends nothing of buckets that an earlier life claimed
// one by one. Claims that have ended make room for others.
func TestWholeClaimsKeepThoseOfBefore(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m, lending_limit: 0.5")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		c.running["us/n1"].fits(t, request("before"), 10)
		c.stop("us/n1")
		n := c.start("us/n1", d)
		held := n.claimsAtMost(1)
		for _, account := range []string{"a", "b", "c"} {
			if got := n.fits(t, request(account), 100); got != 50 {
				t.Errorf("%d admitted of %s, want 50", got, account)
			}
		}
		if got := n.fits(t, request("before"), 1); got != 0 {
			t.Error("admitted what an earlier life may have spent")
		}
		claims := n.journal.Stats().Checkpoints
		time.Sleep(2*time.Hour + time.Minute)
		if held.full(time.Now(), 0) {
			t.Error("claims that ended long ago leave no room for others")
		}
		n.fits(t, request("d"), 1)
		if got := n.journal.Stats().Checkpoints; got > claims {
			t.Errorf("%d claims in the journal, before %d: those that ended were not pruned", got,
				claims)
		}
	})
}

// BenchmarkRandomKeysInAnOutage measures the cost of a new key that is spent of without the store:
// memory, time, and with a journal the growth of its file.
func BenchmarkRandomKeysInAnOutage(b *testing.B) {
	for _, with := range []string{"no journal", "a journal"} {
		b.Run(with, func(b *testing.B) {
			n := unstarted(b, 1, documents.Parse(b, 1, hereAndThere,
				"name: per-account, limit: 100, window: 1h, lending_limit: 0"))
			var kept *journal.Journal
			if with == "a journal" {
				j, err := journal.Open(filepath.Join(b.TempDir(), "j"),
					journal.Options{Region: "here", Node: "n1"})
				if err != nil {
					b.Fatal(err)
				}
				defer j.Close()
				kept = j
				n.fallback.claims = newClaims(j, time.Now, n.deadline, n.log)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			b.ResetTimer()
			denied := 0
			var mu sync.Mutex
			var callers sync.WaitGroup
			for caller := range 64 {
				callers.Go(func() {
					own := 0
					for i := caller; i < b.N; i += 64 {
						q := request(fmt.Sprintf("random-%010d", i))
						if !n.askWithoutStore(q, true).Allowed {
							own++
						}
					}
					mu.Lock()
					defer mu.Unlock()
					denied += own
				})
			}
			callers.Wait()
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "heap-B/key")
			b.ReportMetric(float64(n.fallback.Status().Bytes)/float64(b.N), "counted-B/key")
			b.ReportMetric(float64(denied), "denied")
			if kept != nil {
				b.ReportMetric(float64(kept.Stats().Checkpoints), "claims")
			}
		})
	}
}

// A request that one of its limits denies makes no record of the other limits, and no claim in the
// journal.
func TestWhatIsDeniedTakesNoMemory(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: account, limit: 100, window: 1m, lending_limit: 0",
		"name: address, key: [address], limit: 2, window: 1m, lending_limit: 0")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		admitted := 0
		for i := range 500 {
			q := Request{Domain: "api", Cost: 1,
				Descriptors: map[string]string{"account": fmt.Sprint(i), "address": "one"}}
			if n.askWithoutStore(q, true).Allowed {
				admitted++
			}
		}
		s := n.fallback.Status()
		if claims := n.journal.Stats().Checkpoints; admitted != 2 || s.Buckets != 3 ||
			s.Units != 4 || claims != 3 {
			t.Errorf("%d admitted, %+v, %d claims; want 2, of 2 accounts and an address", admitted,
				s, claims)
		}
	})
}
