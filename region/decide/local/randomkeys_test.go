package local

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// bytesOfA is what the bucket of account "a" takes in the meter.
const bytesOfA = recordBytes + len("7:account,1:a,")

// In an outage 100,350 random keys once made the node deny every new key. Now they take only some
// of the memory, and each key has its own part, which it spends once.
func TestRandomKeysInAnOutage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := with(t, 1, "name: minute, limit: 100, window: 1m, lending_limit: 0")
		n.asks("old", 1)
		const keys = 100_350
		for i := range keys {
			if !n.asks(fmt.Sprintf("random-%d", i), 1).Admitted {
				t.Fatalf("random key %d is denied", i)
			}
		}
		if got := n.admits("new", 100); got != 40 {
			t.Errorf("%d admitted of a new key, its part is 40", got)
		}
		if got := n.admits("old", 100); got != 39 {
			t.Errorf("%d more admitted of a key that was there before, 39 are left of its part",
				got)
		}
		s := n.Status()
		if s.Buckets != keys+2 || s.Units != keys+80 || s.Unbooked != keys+80 || s.Refused != 0 ||
			s.Bytes > maxBytes/8 {
			t.Errorf("%+v", s)
		}
	})
}

// Whatever the ids of buckets are, the meter says of each what a plain map of all of them says.
func TestFallbackAgainstAPlainMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		a := with(t, 1, "name: minute, limit: 25, window: 1m, lending_limit: 0").applied("a")
		f, plain, now := New(Config{}), map[string]quantity.Units{}, time.Unix(6_000_000, 0)
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
			m := f.take(Charge{Applied: one, Cost: cost}, true, now)
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

// BenchmarkRandomKeysInAnOutage measures the cost of a new key that is spent of without the store:
// memory, time, and with a journal the growth of its file.
func BenchmarkRandomKeysInAnOutage(b *testing.B) {
	for _, kept := range []string{"no journal", "a journal"} {
		b.Run(kept, func(b *testing.B) {
			n := with(b, 1, "name: per-account, limit: 100, window: 1h, lending_limit: 0")
			var file *journal.Journal
			if kept == "a journal" {
				j, err := journal.Open(filepath.Join(b.TempDir(), "j"),
					journal.Options{Region: "here", Node: "n1"})
				suite.Must(b, err)
				defer j.Close()
				file = j
				n.claims = newClaims(j, time.Now, store.DefaultTimeout, slog.New(slog.DiscardHandler))
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
						if !n.asks(fmt.Sprintf("random-%010d", i), 1).Admitted {
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
			b.ReportMetric(float64(n.Status().Bytes)/float64(b.N), "counted-B/key")
			b.ReportMetric(float64(denied), "denied")
			if file != nil {
				b.ReportMetric(float64(file.Stats().Checkpoints), "claims")
			}
		})
	}
}

// A request that one of its limits denies makes no record of the other limits, and no claim in the
// journal.
func TestWhatIsDeniedTakesNoMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, n := born(t, "name: account, limit: 100, window: 1m, lending_limit: 0",
			"name: address, key: [address], limit: 2, window: 1m, lending_limit: 0")
		admitted := 0
		for i := range 500 {
			q := map[string]string{"account": fmt.Sprint(i), "address": "one"}
			if n.Spend(n.charges("api", q, 1), true).Admitted {
				admitted++
			}
		}
		s := n.Status()
		if claims := n.journal.Stats().Checkpoints; admitted != 2 || s.Buckets != 3 ||
			s.Units != 4 || claims != 3 {
			t.Errorf("%d admitted, %+v, %d claims; want 2, of 2 accounts and an address", admitted,
				s, claims)
		}
	})
}
