package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// termsOf returns terms of a kind with a long window, of ten units (and for a bucket a burst of
// 25). So no cell ends and no token comes while a test runs, except that the cells of buckets are a
// second.
func termsOf(kind algorithms.Kind) algorithms.Terms {
	window, burst := long, quantity.Units(0)
	if kind.Bucket() {
		window, burst = 30*24*hourLong, 25
	}
	t := algorithms.Terms{Kind: kind, Window: window, Cell: algorithms.CellLength(kind, window),
		Tick:        algorithms.Tick(kind, 25, window),
		Entitlement: 10, Burst: burst}
	if kind.Sliding() {
		t.ClockMargin = algorithms.ClockMargin
	}
	return t
}

// weighsUntil returns until when a charge of a bucket, made at a time, can matter, calculated for
// each kind separately.
func weighsUntil(t algorithms.Terms, at quantity.StoreTime) quantity.StoreTime {
	switch t.Kind {
	case algorithms.FixedWindow:
		return quantity.StoreTime((int64(at)/t.Window + 1) * t.Window)
	case algorithms.SlidingWindowCounter:
		return quantity.StoreTime((int64(at)/t.Window + 2) * t.Window)
	case algorithms.SlidingWindowLog:
		return at.Add(t.Window)
	}
	// an empty bucket is full, or a full queue empty
	return quantity.StoreTime(int64(at) + int64(quantity.Units(t.Window)*t.Burst/t.Entitlement))
}

// refundableUntil returns until when a charge can be refunded: as long as it matters, but for a
// bucket at most a day.
func refundableUntil(t algorithms.Terms, at quantity.StoreTime) quantity.StoreTime {
	if t.Kind.Bucket() {
		return min(weighsUntil(t, at), at.Add(24*hourLong))
	}
	return weighsUntil(t, at)
}

// on is a call that decides costs on one bucket of any kind.
func on(id string, of algorithms.Terms, costs ...quantity.Units) algorithms.Decide {
	return algorithms.Decide{Fence: under(epoch), Commit: true, Costs: costs,
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: BucketKey(Whole, id),
			Terms: of}}}}
}

// refundOf is a call that takes back what one decision charged.
func refundOf(receipt string, d algorithms.Decided, cost quantity.Units,
	charged ...algorithms.LimitTarget) algorithms.Settle {
	c := algorithms.Settle{Fence: under(epoch), Receipt: SettleKey(Whole, receipt),
		Once: OnceKey(Whole, "none"), At: d.Now, Cost: cost}
	for i, b := range charged {
		c.Charges = append(c.Charges,
			algorithms.Charge{Target: algorithms.Target{Key: b.Key, Terms: b.Terms},
				Cell: d.Buckets[i].Cell})
	}
	return c
}

func refund(t testing.TB, s *Store, c algorithms.Settle) algorithms.Settled {
	t.Helper()
	r, err := s.Settle(t.Context(), c)
	if !Answered(err) {
		t.Fatal(err)
	}
	return r
}

func reset(t testing.TB, s *Store, id string, of algorithms.Terms) algorithms.Cleared {
	t.Helper()
	r, err := s.Reset(t.Context(), algorithms.Reset{Fence: under(epoch),
		Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: of}})
	if !Answered(err) {
		t.Fatal(err)
	}
	return r
}

// endsAt returns when a key ends, by the server's clock, in microseconds.
func endsAt(t testing.TB, c *redis.Client, key string) quantity.StoreTime {
	t.Helper()
	tx := c.TxPipeline() // nothing comes between the two
	left, now := tx.PTTL(t.Context(), key), tx.Time(t.Context())
	if _, err := tx.Exec(t.Context()); err != nil || left.Val() <= 0 {
		t.Fatalf("key %q lasts %v, %v", key, left.Val(), err)
	}
	return quantity.StoreTime(now.Val().Add(left.Val()).UnixMicro())
}

// between fails the test unless a key ends between two times. A second is allowed for rounding.
func between(t testing.TB, what string, ends, least, most quantity.StoreTime) {
	t.Helper()
	const second = 1_000_000
	if ends < least-second || ends > most+second {
		t.Errorf("%s ends at %v, want %v to %v", what, time.UnixMicro(int64(ends)),
			time.UnixMicro(int64(least)), time.UnixMicro(int64(most)))
	}
}

const (
	hourLong   = int64(3600 * 1_000_000)
	minuteLong = int64(60 * 1_000_000)
)

// TestTTLOfEachKind: whichever call writes a bucket first, its hash lasts a second longer than
// anything in it can matter, and not for ever.
func TestTTLOfEachKind(t *testing.T) {
	writes := map[string]func(t *testing.T, s *Store, id string, of algorithms.Terms,
		cell quantity.Cell){
		"decide": func(t *testing.T, s *Store, id string, of algorithms.Terms, _ quantity.Cell) {
			decide(t, s, on(id, of, 10))
		},
		"lend": func(t *testing.T, s *Store, id string, of algorithms.Terms, cell quantity.Cell) {
			lend(t, s, algorithms.Lend{Fence: under(epoch),
				Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: of},
				Debit: algorithms.Debit{Peer: "us",
					Cell: latest(of, cell), Lent: 1, Cap: 10}})
		},
		"credit": func(t *testing.T, s *Store, id string, of algorithms.Terms, cell quantity.Cell) {
			credit(t, s, algorithms.Credit{Fence: under(epoch),
				Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: of},
				Announcement: algorithms.Announcement{Peer: "us",
					PeerGeneration: 1, Cell: latest(of, cell), Lent: 1, Most: 10}})
		},
		"reset": func(t *testing.T, s *Store, id string, of algorithms.Terms,
			_ quantity.Cell) {
			reset(t, s, id, of)
		},
	}
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		for _, k := range algorithms.Kinds {
			of := termsOf(k)
			for name, write := range writes {
				id := fmt.Sprint(k, name)
				before := inspect(t, s, id, of)
				write(t, s, id, of, before.Cell)
				after := inspect(t, s, id, of)
				if before.Cell != after.Cell && (name == "lend" || name == "credit") {
					continue // the cell they wrote has come meanwhile: they may have been refused
				}
				least := max(weighsUntil(of, before.Now), of.Weighs(before.Cell+1)) +
					algorithms.KeySlack
				most := (max(weighsUntil(of, after.Now), of.Weighs(after.Cell+1)) +
					algorithms.KeySlack).Add(2 * of.Cell).Add(of.ClockMargin)
				between(t, fmt.Sprint(k, ", ", name), endsAt(t, client, BucketKey(Whole, id)),
					least, most)
			}
		}
	})
}

// TestRefundOnBoth: a charge comes back once, on either server. The refund is remembered for a
// second longer than the charge weighs, and no other key is written.
func TestRefundOnBoth(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		keys := []string{TokenKey(Whole)}
		for _, k := range algorithms.Kinds {
			of, id, receipt := termsOf(k), string(k), "n1:1:"+string(k)
			keys = append(keys, BucketKey(Whole, id), SettleKey(Whole, receipt))
			d := decide(t, s, on(id, of, 4))
			want := algorithms.SettledCharge{Back: 4}
			if k == algorithms.LeakyBucket {
				want = algorithms.SettledCharge{Refusal: algorithms.TurnPromised}
			}
			c := refundOf(receipt, d, 4, on(id, of).Buckets...)
			first := refund(t, s, c)
			if first.Status != algorithms.StatusOK || first.Repeated || len(first.Charges) != 1 ||
				first.Charges[0] != want {
				t.Errorf("%s: %+v, want %+v", k, first, want)
			}
			suite.Must(t, client.ScriptFlush(t.Context()).Err())
			if again := refund(t, s, c); !again.Repeated || again.Now != first.Now ||
				again.Charges[0] != want {
				t.Errorf("%s, again: %+v, want %+v", k, again, first)
			}
			if got := inspect(t, s, id, of).Used; got != 4-want.Back {
				t.Errorf("%s: %d used", k, got)
			}
			least := refundableUntil(of, d.Now) + algorithms.KeySlack
			between(t, "the memory of a refund of "+string(k),
				endsAt(t, client, SettleKey(Whole, receipt)), least, least.Add(of.Window))
			least = weighsUntil(of, d.Now) + algorithms.KeySlack
			between(t, "the hash of "+string(k), endsAt(t, client, BucketKey(Whole, id)), least,
				least.Add(3*of.Window))
		}
		holds(t, client, keys...)
	})
}

// holds fails the test unless a server has exactly these keys.
func holds(t testing.TB, c *redis.Client, want ...string) {
	t.Helper()
	got, err := c.Keys(t.Context(), "*").Result()
	suite.Must(t, err)
	left := map[string]bool{}
	for _, key := range got {
		left[key] = true
	}
	for _, key := range want {
		if !left[key] {
			t.Errorf("no key %q", key)
		}
		delete(left, key)
	}
	if len(left) > 0 {
		t.Errorf("keys that nobody knows: %v", left)
	}
}

// TestRefundOfSeveralBuckets: charge by charge, in their order. The refund is remembered for as
// long as the longest of them weighs.
func TestRefundOfSeveralBuckets(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		all := algorithms.Decide{Fence: under(epoch), Commit: true, Costs: []quantity.Units{3}}
		for _, k := range algorithms.Kinds {
			all.Buckets = append(all.Buckets,
				algorithms.LimitTarget{Target: algorithms.Target{Key: BucketKey(Whole, string(k)),
					Terms: termsOf(k)}})
		}
		d := decide(t, s, all)
		c := refundOf("all", d, 3, all.Buckets...)
		c.Charges[0].Cell -= 1 // a cell that is over
		want := []algorithms.SettledCharge{{Refusal: algorithms.NoLongerWeighs}, {Back: 3}, {Back: 3},
			{Back: 3}, {Refusal: algorithms.TurnPromised}}
		for _, repeated := range []bool{false, true} {
			got := refund(t, s, c)
			if got.Status != algorithms.StatusOK || got.Repeated != repeated ||
				fmt.Sprint(got.Charges) != fmt.Sprint(want) {
				t.Errorf("%+v, want %+v, repeated %v", got, want, repeated)
			}
		}
		for i, k := range algorithms.Kinds {
			if got := inspect(t, s, string(k), termsOf(k)).Used; got != 3-want[i].Back {
				t.Errorf("%s: %d used", k, got)
			}
		}
		least := refundableUntil(termsOf(algorithms.SlidingWindowCounter), d.Now) +
			algorithms.KeySlack
		between(t, "the memory of a refund", endsAt(t, client, SettleKey(Whole, "all")), least,
			least.Add(2*long))
	})
}

// TestRefundAndResetAreGuarded: neither touches a store of another generation or epoch, nor takes
// an impossible cost.
func TestRefundAndResetAreGuarded(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		of := termsOf(algorithms.FixedWindow)
		d := decide(t, s, on("k", of, 4))
		c := refundOf("x", d, 4, on("k", of).Buckets...)
		for _, cost := range []quantity.Units{0, -1, algorithms.MaxUnits + 1} {
			odd := c
			odd.Cost = cost
			if got := refund(t, s, odd); got.Status != algorithms.StatusImplausible {
				t.Errorf("cost %d: %+v", cost, got)
			}
		}
		other := c
		other.Epoch = "2-b"
		if got := refund(t, s, other); got.Status != algorithms.StatusUnknown {
			t.Errorf("another epoch: %+v", got)
		}
		if got := inspect(t, s, "k", of).Used; got != 4 {
			t.Errorf("%d used after refusals", got)
		}
		if got := reset(t, s, "k", of); got.Status != algorithms.StatusOK || got.Used != 4 ||
			got.Free != 6 {
			t.Errorf("reset: %+v", got)
		}
		if got := refund(t, s, c); got.Charges[0].Back != 0 {
			t.Errorf("a refund of what was reset: %+v", got)
		}
		if got := inspect(t, s, "k", of); got.Used != 0 || got.Free != 10 {
			t.Errorf("after the reset: %+v", got)
		}
		suite.Must(t, client.FlushAll(t.Context()).Err())
		if got := refund(t, s, c); got.Status != algorithms.StatusUnknown {
			t.Errorf("refund by a store that is not open: %+v", got)
		}
		if got := reset(t, s, "k", of); got.Status != algorithms.StatusUnknown {
			t.Errorf("reset by a store that is not open: %+v", got)
		}
		holds(t, client)
	})
}
