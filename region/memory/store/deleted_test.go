package store

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/quantity"
)

// TestADeletionIsMetByWhoKnewTheBucket: refund and reset of a deleted bucket create nothing in its
// place, so that the next decision notices the deletion too.
func TestADeletionIsMetByWhoKnewTheBucket(t *testing.T) {
	calls := map[string]func(t *testing.T, s *Store, known,
		at quantity.StoreTime) algorithms.Status{
		"refund": func(t *testing.T, s *Store, known, at quantity.StoreTime) algorithms.Status {
			b := target("k", 100)
			got, err := s.Settle(t.Context(), algorithms.Settle{Fence: under(epoch),
				Receipt: SettleKey(Whole, "r"), Once: OnceKey(Whole, "none"),
				At: at, Cost: 1, Charges: []algorithms.Charge{{Target: algorithms.Target{Key: b.Key,
					Terms: recovered(), ExistsUntil: known},
					Cell: quantity.Cell(int64(at) / long)}}})
			if !Answered(err) {
				t.Fatal(err)
			}
			return got.Status
		},
		"reset": func(t *testing.T, s *Store, known, _ quantity.StoreTime) algorithms.Status {
			got, err := s.Reset(t.Context(), algorithms.Reset{Fence: under(epoch),
				Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: recovered(),
					ExistsUntil: known}})
			if !Answered(err) {
				t.Fatal(err)
			}
			return got.Status
		},
	}
	onBoth(t, func(t *testing.T, kind server) {
		for name, call := range calls {
			t.Run(name, func(t *testing.T) {
				server := kind.start(t)
				s, client := node(t, server, first), fixtures.Operator(t, server)
				c := charge("k", 100, 60)
				c.Buckets[0].Terms = recovered()
				d := decide(t, s, c)
				c.Buckets[0].ExistsUntil = d.Buckets[0].ExistsUntil
				if gone := client.Del(t.Context(), c.Buckets[0].Key).Val(); gone != 1 {
					t.Fatalf("%d keys deleted", gone)
				}
				if got := call(t, s, d.Buckets[0].ExistsUntil,
					d.Now); got != algorithms.StatusLost {
					t.Errorf("%s: %s, want %s", name, got, algorithms.StatusLost)
				}
				if n := client.Exists(t.Context(), SettleKey(Whole, "r")).Val(); n != 0 {
					t.Error("the receipt is remembered, though nothing was given back")
				}
				if d := decide(t, s, c); d.Status != algorithms.StatusLost {
					t.Errorf("after it: %s, want %s", d.Status, algorithms.StatusLost)
				}
			})
		}
	})
}

// recovered returns the terms of a bucket of 100 that is recovered after a loss.
func recovered() algorithms.Terms {
	t := terms(100)
	t.Recovered = true
	return t
}

// TestADeletedPromiseIsMissed: a bucket that held only a promise for the next cell is known to
// exist until that cell is over.
func TestADeletedPromiseIsMissed(t *testing.T) {
	const window = int64(10_000_000)
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		t.Run(string(kind), func(t *testing.T) {
			now := time.UnixMicro(180_000_000 * window)
			server := fixtures.Started(t)(servers.StartDriven(func() time.Time { return now }))
			s, client := node(t, server, first), fixtures.Operator(t, server)
			b := target("k", 100)
			b.Terms = algorithms.Terms{Kind: kind, Window: window, Cell: window, Tick: 1,
				Entitlement: 100, Recovered: true}
			given := lend(t, s, algorithms.Lend{Fence: under(epoch),
				Target: algorithms.Target{Key: b.Key, Terms: b.Terms},
				Debit: algorithms.Debit{Peer: "us",
					Cell: quantity.Cell(now.UnixMicro()/window + 1), Lent: 40, Cap: 100}})
			if given.Row.Lent != 40 {
				t.Fatalf("%+v", given)
			}
			b.ExistsUntil = given.State.ExistsUntil
			now = now.Add(15 * time.Second) // the promised cell has begun
			if gone := client.Del(t.Context(), b.Key).Val(); gone != 1 {
				t.Fatalf("%d keys deleted", gone)
			}
			d := decide(t, s, algorithms.Decide{Fence: under(epoch), Commit: true,
				Buckets: []algorithms.LimitTarget{b}, Costs: []quantity.Units{100}})
			if d.Status != algorithms.StatusLost {
				t.Errorf("%s, %d admitted; known to be there until %d, now %d", d.Status,
					admitted(d), given.State.ExistsUntil, d.Now)
			}
		})
	}
}
