package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestKeysEndByTheMark: the clock of a Redis was 30 minutes ahead while it decided, and is right
// again. The store's time stands still until the clock has caught up. Keys must last until then,
// for as long as their content weighs by the store's time.
func TestKeysEndByTheMark(t *testing.T) {
	const window, step = time.Minute, 30 * time.Minute
	begin := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	d, err := servers.StartDrivenBy(begin, "r1")
	suite.Must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	now := begin
	s := connect(t, Options{URL: d.URL(), Now: func() time.Time { return now }})
	mustOpen(t, s, first)
	at := func(moment time.Time) { now = moment; d.Set(moment) }
	of := algorithms.Terms{Kind: algorithms.FixedWindow, Window: window.Microseconds(),
		Cell: window.Microseconds(), Tick: 1, Entitlement: 10}
	key, once, receipt := BucketKey(Whole, "k"), OnceKey(Whole, "once"), SettleKey(Whole, "r")

	at(begin.Add(step))
	decide(t, s, on("other", of, 1)) // the mark is ahead from now on
	at(begin)
	c := on("k", of, 10)
	c.Once = once
	charged := decide(t, s, c)
	if admitted(charged) != 1 {
		t.Fatalf("%+v", charged)
	}
	refund(t, s, refundOf("r", charged, 3, c.Buckets...))

	for after := time.Duration(0); after < step+window; after += 10 * time.Second {
		at(begin.Add(after))
		if got := inspect(t, s, "k", of); got.Used != 7 || !d.Holds(key) {
			t.Fatalf("%v later: %+v; the bucket is there: %v", after, got, d.Holds(key))
		}
		if !d.Holds(receipt) {
			t.Fatalf("%v later the refund is forgotten, and can be had once more", after)
		}
	}
	at(begin.Add(step + 2*window + time.Duration(algorithms.KeySlack)*time.Microsecond +
		time.Millisecond))
	for _, k := range []string{key, once, receipt} {
		if d.Expire(); d.Holds(k) {
			t.Errorf("%s outlives its use by more than %v", k,
				time.Duration(algorithms.KeySlack)*time.Microsecond)
		}
	}
}

// TestNoLimitEndsABucketBeforeItWasSaid: a bucket takes hours to fill by one limit, seconds by
// another, and longer with more burst. Whichever follow each other, in a cell or in several, the
// bucket is there until the latest time that any answer said, to a request or to who only looks.
func TestNoLimitEndsABucketBeforeItWasSaid(t *testing.T) {
	now := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	d, err := servers.StartDrivenBy(now, "r1")
	suite.Must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	s := connect(t, Options{URL: d.URL(), Now: func() time.Time { return now }})
	mustOpen(t, s, first)
	const slow, fast = 1000, 1_000_000 // a day
	limits := []struct{ entitlement, burst quantity.Units }{{fast, 10}, {slow, 10}, {slow, 30},
		{fast, 30}, {fast, 10}, {slow, 10}, {fast, 10}, {slow, 10}}
	for _, kind := range []algorithms.Kind{algorithms.TokenBucket, algorithms.LeakyBucket} {
		for _, pause := range []time.Duration{0, 2 * time.Minute} { // a queue has promised turns
			for steps := 1; steps < len(limits); steps++ {
				of, id := termsOf(kind), fmt.Sprint(kind, pause, steps)
				of.Window = (24 * time.Hour).Microseconds()
				of.Cell = algorithms.CellLength(kind, of.Window)
				now = now.Truncate(time.Minute).Add(time.Minute)
				var said quantity.StoreTime
				for i, limit := range limits[:steps+1] {
					of.Entitlement, of.Burst = limit.entitlement, limit.burst
					if i == steps {
						said = max(said, inspect(t, s, id, of).ExistsUntil)
						break
					}
					now = now.Add(pause)
					d.Set(now)
					said = max(said, decide(t, s, on(id, of, 1)).Buckets[0].ExistsUntil)
				}
				now = time.UnixMicro(int64(said))
				d.Set(now)
				if d.Expire(); !d.Holds(BucketKey(Whole, id)) {
					t.Errorf("%s, %v between limits, after %d of them: gone before %v", kind, pause,
						steps, now)
				}
			}
		}
	}
}
