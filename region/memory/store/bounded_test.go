package store

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// weight returns how many fields a hash has, and how many bytes they are with their names.
func weight(t *testing.T, c *redis.Client, key string) (fields, bytes int) {
	t.Helper()
	all, err := c.HGetAll(t.Context(), key).Result()
	suite.Must(t, err)
	for name, value := range all {
		bytes += len(name) + len(value)
	}
	return len(all), bytes
}

// TestNothingGrows: a bucket holds no more after thousands of decisions over many cells than after
// two windows, with rights lent and borrowed in each. It holds the rows that still weigh, a few
// numbers, and, for a log, the entries in its window.
func TestNothingGrows(t *testing.T) {
	suite.OneGoroutine(t)
	const (
		calls, each = 100, 20 // of each kind: 10,000 decisions in all
		window      = 10_000_000
		step        = 1400 * time.Millisecond // 14 windows, 140 cells of a second
		// slightly less than is asked for, because denials take the embedded server long
		units = 130
	)
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	now := begin
	server := fixtures.Started(t)(servers.StartDriven(func() time.Time { return now }))
	s, client := node(t, server, first), fixtures.Operator(t, server)
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			of := algorithms.Terms{Kind: kind, Window: window, Cell: algorithms.CellLength(kind,
				window), Tick: algorithms.Tick(kind, units, window), Entitlement: units}
			if kind.Bucket() {
				of.Burst = units
			}
			if kind.Sliding() {
				of.ClockMargin = algorithms.ClockMargin
			}
			costs := make([]quantity.Units, each)
			for i := range costs {
				costs[i] = 1
			}
			key, random, admits := BucketKey(Whole, string(kind)), rand.New(rand.NewPCG(3, 4)),
				quantity.Units(0)
			var maxFields, maxBytes [2]int // in the first windows, and later
			for call := range calls {
				now = now.Add(step)
				d := decide(t, s, on(string(kind), of, costs...))
				admits += admitted(d)
				if call%2 == 0 {
					fields, bytes := weight(t, client, key)
					phase := min(call/(calls/4), 1) // the first quarter is three and a half windows
					maxFields[phase], maxBytes[phase] = max(maxFields[phase], fields),
						max(maxBytes[phase], bytes)
					continue
				}
				for _, peer := range []string{"us", "ap"} {
					cell := d.Buckets[0].Cell + quantity.Cell(random.Int64N(2))
					lend(t, s, algorithms.Lend{Fence: under(epoch),
						Target: algorithms.Target{Key: key, Terms: of},
						Debit: algorithms.Debit{Peer: peer, Cell: cell,
							Lent: quantity.Units(1 + random.Int64N(3)), Cap: 20,
							Burst: quantity.Units(random.Int64N(3)), CapBurst: 9}})
					credit(t, s, algorithms.Credit{Fence: under(epoch),
						Target: algorithms.Target{Key: key, Terms: of},
						Announcement: algorithms.Announcement{Peer: peer,
							PeerGeneration: 1, Cell: cell, Lent: quantity.Units(1 + random.Int64N(3)),
							Most: 20, Burst: quantity.Units(random.Int64N(3)), MostBurst: 9}})
				}
			}
			if admits == 0 || admits == calls*each {
				t.Errorf("%d of %d admitted: the test shows nothing", admits, calls*each)
			}
			if maxFields[1] > maxFields[0]+1 || maxBytes[1] > maxBytes[0]+maxBytes[0]/4 {
				t.Errorf("it holds up to %d fields and %d bytes, in its first windows %d and %d",
					maxFields[1], maxBytes[1], maxFields[0], maxBytes[0])
			}
			if maxFields[1] > 10 || maxBytes[1] > 2000 {
				t.Errorf("it holds up to %d fields and %d bytes", maxFields[1], maxBytes[1])
			}
			t.Logf("%d admitted, %v fields, %v bytes", admits, maxFields, maxBytes)

			// A while later all that is gone: the hash has ended, or the next decision prunes what
			// is left.
			now = now.Add(5 * window * time.Microsecond)
			decide(t, s, on(string(kind), of, 1))
			rows, err := client.HGet(t.Context(), key, "rows").Result()
			if err != nil && !errors.Is(err, redis.Nil) || rows != "" {
				t.Errorf("rows %q, %v: none weighs any more", rows, err)
			}
			if fields, bytes := weight(t, client, key); fields > 8 || bytes > 200 {
				t.Errorf("%d fields and %d bytes of one unit", fields, bytes)
			}
		})
	}
}

// TestTheLogIsBoundedByItsWindow: from a log of many entries, each of its own time, the next
// decision removes those that have left the window, however the log was divided into pieces.
func TestTheLogIsBoundedByItsWindow(t *testing.T) {
	suite.OneGoroutine(t)
	const window = 10_000_000
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	server := fixtures.Started(t)(servers.StartDriven(func() time.Time { return now }))
	s, client := node(t, server, first), fixtures.Operator(t, server)
	of := algorithms.Terms{Kind: algorithms.SlidingWindowLog, Window: window,
		Cell: algorithms.CellLength(algorithms.SlidingWindowLog, window), Tick: 1,
		Entitlement: 1000, ClockMargin: algorithms.ClockMargin}
	key := BucketKey(Whole, "k")
	for _, phase := range []struct {
		calls   int
		every   time.Duration
		entries int // in the window, at most
	}{{400, 20 * time.Millisecond, 400}, {100, time.Second, 10}, {300, 25 * time.Millisecond, 310},
		{1, time.Minute, 1}} {
		for range phase.calls {
			now = now.Add(phase.every)
			if d := decide(t, s, on("k", of, 1)); admitted(d) != 1 {
				t.Fatalf("%+v", d)
			}
		}
		fields, bytes := weight(t, client, key)
		const entry, piece = 12, 64 * 12 // bytes
		if bytes > 200+entry*phase.entries+piece || fields > 8+phase.entries*entry/piece+1 {
			t.Errorf("%d decisions every %v: %d fields and %d bytes for %d entries", phase.calls,
				phase.every, fields, bytes, phase.entries)
		}
		all, err := client.HGetAll(t.Context(), key).Result()
		suite.Must(t, err)
		entries := 0
		for name, text := range all {
			if strings.HasPrefix(name, "q") {
				entries += strings.Count(text, ":")
			}
		}
		if entries > phase.entries || entries == 0 {
			t.Errorf("%d decisions every %v: %d entries are kept, %d are in the window",
				phase.calls, phase.every, entries, phase.entries)
		}
	}
}
