//go:build !race

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

const second = int64(1_000_000)

// modelled are the buckets: one of each kind, one that is not restored after a loss, and one of
// which nodes assign rights to Envoys.
var modelled = []algorithms.Terms{
	{Kind: algorithms.FixedWindow, Window: 100 * second, Cell: 100 * second, Tick: 1,
		Entitlement: 10, Recovered: true},
	{Kind: algorithms.SlidingWindowCounter, Window: 100 * second, Cell: 100 * second, Tick: 1,
		Entitlement: 10, ClockMargin: second / 10, Recovered: true},
	{Kind: algorithms.SlidingWindowLog, Window: 100 * second, Cell: 10 * second, Tick: 1,
		Entitlement: 10, ClockMargin: second / 10, Recovered: true},
	{Kind: algorithms.TokenBucket, Window: 60 * second, Cell: second, Tick: 1, Entitlement: 30,
		Burst: 8},
	{Kind: algorithms.LeakyBucket, Window: 60 * second, Cell: second, Tick: 1, Entitlement: 30,
		Burst: 8},
	{Kind: algorithms.FixedWindow, Window: second, Cell: second, Tick: 1, Entitlement: 10},
	{Kind: algorithms.TokenBucket, Window: 60 * second, Cell: 10 * second, Tick: 1, Entitlement: 30,
		Burst: 8},
}

func modelledKey(i int) string { return store.BucketKey(store.Whole, fmt.Sprint(i)) }

// worlds are two nodes on an embedded Redis, and two nodes on a twin of it.
type worlds struct {
	driven   *Driven
	server   *Twin
	now      quantity.StoreTime
	skew     [2]int64 // of the nodes' clocks
	stores   [2]*store.Store
	twins    [2]*store.Store
	ways     [2]*Way
	epoch    string
	known    map[int]quantity.StoreTime // as the last State said
	lostAt   map[int]quantity.StoreTime // as the last answer said
	receipts []algorithms.Settle
	names    int
	copies   []func() // copies of the servers, each to be promoted once
}

// same runs a call of one node in both worlds and returns both results.
func same[R any](t *rapid.T, w *worlds, i int, what any,
	call func(*store.Store) []store.Result[R]) []store.Result[R] {
	stores, twins := call(w.stores[i]), call(w.twins[i])
	for n := range twins {
		if a, b := stores[n], twins[n]; !reflect.DeepEqual(a.Value, b.Value) ||
			w.word(a.Err) != w.word(b.Err) {
			t.Fatalf("node %d, %T %+v:\nstore %+v, %v\ntwin %+v, %v", i, what, what, a.Value, a.Err,
				b.Value, b.Err)
		}
	}
	if s, m := w.stores[i], w.twins[i]; s.Generation() != m.Generation() ||
		s.Begun(store.Whole) != m.Begun(store.Whole) ||
		!slices.Equal(s.Data(), m.Data()) || s.Deadline() != m.Deadline() ||
		s.Latest() != m.Latest() || (s.Secret() == "") != (m.Secret() == "") {
		t.Fatalf("node %d after %T %+v: store %d %d %v %d  twin %d %d %v %d", i, what, what,
			s.Generation(), s.Begun(store.Whole), s.Data(), s.Latest(), m.Generation(),
			m.Begun(store.Whole), m.Data(), m.Latest())
	}
	return twins
}

// one makes a list of the result of a call for one bucket.
func one[R any](value R, err error) []store.Result[R] {
	return []store.Result[R]{{Value: value, Err: err}}
}

// word returns what an error means for a caller, with words that both worlds share.
func (w *worlds) word(err error) string {
	var e *store.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return fmt.Sprint("unreached: ", store.Unreached(err), e.Call, e.Ran, e.Err)
	}
	return strings.ReplaceAll(err.Error(), strings.TrimPrefix(w.driven.URL(), "redis://"), inMemory)
}

func begin(t *rapid.T, d *Driven) *worlds {
	w := &worlds{driven: d, epoch: "1-a", known: map[int]quantity.StoreTime{},
		lostAt: map[int]quantity.StoreTime{}}
	year := rapid.SampledFrom([]int{1975, 2026, 2150}).Draw(t, "year")
	w.now = quantity.StoreTime(time.Date(year, 3, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	d.outage = outage{}
	d.Flush()
	d.Set(time.UnixMicro(int64(w.now)))
	d.Rename(rapid.SampledFrom([]string{"r", "r", "r", ""}).Draw(t, "replid"))
	w.server = NewTwin(func() quantity.StoreTime { return w.now }, d.Replid())
	for i := range w.stores {
		w.start(t, i)
	}
	return w
}

// start starts a node in both worlds, or starts it again.
func (w *worlds) start(t *rapid.T, i int) {
	clock := func() time.Time { return time.UnixMicro(int64(w.now.Add(w.skew[i]))) }
	s, err := w.driven.Connect(clock)
	suite.Must(t, err)
	if w.stores[i] != nil {
		_ = w.stores[i].Close()
	}
	w.stores[i] = s
	w.twins[i], w.ways[i] = w.server.Connect(clock)
}

func (w *worlds) guard(t *rapid.T) algorithms.Fence {
	return algorithms.Fence{Epoch: rapid.SampledFrom([]string{w.epoch, w.epoch, w.epoch, w.epoch,
		w.epoch, "9-z"}).Draw(t, "epoch")}
}

// bucket draws a bucket, and until when its caller knows that it exists.
func (w *worlds) bucket(t *rapid.T) (i int, key string, known quantity.StoreTime) {
	i = rapid.IntRange(0, len(modelled)-1).Draw(t, "bucket")
	return i, modelledKey(i),
		quantity.StoreTime(rapid.SampledFrom([]quantity.StoreTime{0, w.known[i],
			w.known[i]}).Draw(t, "known"))
}

func units(t *rapid.T, what string) quantity.Units {
	return quantity.Units(rapid.Int64Range(0, 9).Draw(t, what))
}

func (w *worlds) cell(t *rapid.T, i int) quantity.Cell {
	return quantity.Cell(int64(w.now)/modelled[i].Cell + rapid.SampledFrom([]int64{0, 0, 0, 1, 1,
		-1}).Draw(t, "cell"))
}

var peers = []string{"us", "ap"}

// saw records what an answer says of a bucket.
func (w *worlds) saw(i int, s algorithms.State, lostAt quantity.StoreTime) {
	w.known[i] = max(w.known[i], s.ExistsUntil)
	if lostAt != 0 {
		w.lostAt[i] = lostAt
	}
}

func (w *worlds) open(t *rapid.T, i int) {
	held := w.twins[i].Generation()
	o := store.Opening{Region: rapid.SampledFrom([]string{"eu", "eu", "eu", "eu", "eu", "eu",
		"us"}).Draw(t, "region"), Epoch: w.epoch,
		LastGeneration: rapid.SampledFrom([]uint64{0, held, held, held, held + 1}).Draw(t, "known"),
		Bootstrap:      rapid.Bool().Draw(t, "bootstrap"),
		Ended:          rapid.SampledFrom([]uint64{0, 0, 0, held}).Draw(t, "ended")}
	same(t, w, i, o, func(s *store.Store) []store.Result[store.Opened] {
		return one(s.Open(context.Background(), o))
	})
}

func (w *worlds) decide(t *rapid.T, i int) {
	var calls []algorithms.Decide
	var of []int
	for range rapid.IntRange(1, 2).Draw(t, "calls") {
		n, key, known := w.bucket(t)
		c := algorithms.Decide{Fence: w.guard(t), Commit: rapid.IntRange(0, 5).Draw(t,
			"commit") > 0,
			Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: key,
				Terms: modelled[n], ExistsUntil: known}}},
			Costs: rapid.SliceOfN(rapid.Map(rapid.Int64Range(1, 4),
				func(n int64) quantity.Units { return quantity.Units(n) }), 1, 3).Draw(t, "costs")}
		if rapid.IntRange(0, 3).Draw(t, "once") == 0 {
			c.Once, c.Costs = store.OnceKey(store.Whole,
				fmt.Sprint(n, rapid.IntRange(0, 1).Draw(t, "request"))), c.Costs[:1]
		}
		calls, of = append(calls, c), append(of, n)
	}
	results := same(t, w, i, calls,
		func(s *store.Store) []store.Result[algorithms.Decided] {
			return s.Decide(context.Background(), calls)
		})
	for n, r := range results {
		w.saw(of[n], algorithms.State{}, r.Value.LostAt)
		if r.Err != nil {
			continue
		}
		w.saw(of[n], r.Value.Buckets[0], 0)
		if r.Value.Answers[0].Admitted && calls[n].Commit {
			w.names++
			w.receipts = append(w.receipts,
				algorithms.Settle{Receipt: store.SettleKey(store.Whole, fmt.Sprint(w.names)),
					Once: store.OnceKey(store.Whole, fmt.Sprint(of[n], 0)),
					At:   r.Value.Now, Cost: calls[n].Costs[0],
					Charges: []algorithms.Charge{{Target: algorithms.Target{Key: calls[n].Buckets[0].Key, Terms: modelled[of[n]]}, Cell: r.Value.Buckets[0].Cell}}})
		}
	}
}

func (w *worlds) lend(t *rapid.T, i int) {
	n, key, known := w.bucket(t)
	c := []algorithms.Lend{{Fence: w.guard(t), Target: algorithms.Target{Key: key,
		Terms: modelled[n], ExistsUntil: known},
		Debit: algorithms.Debit{Peer: rapid.SampledFrom(peers).Draw(t, "peer"),
			Cell:     w.cell(t, n),
			Returned: units(t, "returned"), Lent: units(t, "lent"), Kept: units(t, "kept") / 4,
			Cap: units(t, "cap"), Burst: units(t, "burst"), CapBurst: units(t, "cap burst")}}}
	r := same(t, w, i, c,
		func(s *store.Store) []store.Result[algorithms.Given] {
			return s.Lend(context.Background(), c)
		})
	w.saw(n, r[0].Value.State, r[0].Value.LostAt)
}

func (w *worlds) assign(t *rapid.T, i int) {
	n := len(modelled) - 1
	c := []algorithms.Assign{{Fence: w.guard(t), Target: algorithms.Target{Key: modelledKey(n),
		Terms: modelled[n], ExistsUntil: w.known[n]},
		Holder: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "holder"), Cell: w.cell(t, n),
		Held: units(t, "held") * 3, Returned: units(t, "returned"), Kept: units(t, "kept") / 4}}
	r := same(t, w, i, c,
		func(s *store.Store) []store.Result[algorithms.Assigned] {
			return s.Assign(context.Background(), c)
		})
	w.saw(n, r[0].Value.State, r[0].Value.LostAt)
}

func (w *worlds) credit(t *rapid.T, i int) {
	n, key, known := w.bucket(t)
	c := []algorithms.Credit{{Fence: w.guard(t), Target: algorithms.Target{Key: key,
		Terms: modelled[n], ExistsUntil: known},
		Announcement: algorithms.Announcement{Peer: rapid.SampledFrom(peers).Draw(t, "peer"),
			Cell:           w.cell(t, n),
			PeerGeneration: rapid.Uint64Range(1, 3).Draw(t, "peer generation"), Lent: units(t, "lent"),
			Returned: units(t, "returned") / 2, Most: 8, Burst: units(t, "burst"), MostBurst: 8,
			At: quantity.StoreTime(rapid.SampledFrom([]quantity.StoreTime{0, w.now - 1, w.now,
				w.now + 1, w.now + 300_000}).Draw(t, "at"))}}}
	r := same(t, w, i, c,
		func(s *store.Store) []store.Result[algorithms.Credited] {
			return s.Credit(context.Background(), c)
		})
	w.saw(n, r[0].Value.State, r[0].Value.LostAt)
}

func (w *worlds) recall(t *rapid.T, i int) {
	n, key, known := w.bucket(t)
	c := []algorithms.Recall{{Fence: w.guard(t), Target: algorithms.Target{Key: key,
		Terms: modelled[n], ExistsUntil: known}, Peer: rapid.SampledFrom(peers).Draw(t, "peer"),
		PeerGeneration: rapid.Uint64Range(1, 3).Draw(t, "peer generation")}}
	same(t, w, i, c, func(s *store.Store) []store.Result[algorithms.Recalled] {
		return s.Recall(context.Background(), c)
	})
}

func (w *worlds) restore(t *rapid.T, i int) {
	n := rapid.IntRange(0, 2).Draw(t, "bucket")
	if len(w.lostAt) > 0 {
		n = rapid.SampledFrom(slices.Sorted(maps.Keys(w.lostAt))).Draw(t, "lost bucket")
	}
	split := rapid.IntRange(0, len(peers)).Draw(t, "known peers")
	c := algorithms.Restore{Fence: w.guard(t), Target: algorithms.Target{Key: modelledKey(n),
		Terms: modelled[n]}, LostAt: w.lostAt[n],
		Known: algorithms.Known{Cap: 8, KnownPeers: peers[:split],
			UnknownPeers: peers[split:],
			Use: algorithms.Use{Cell: w.cell(t, n), Units: units(t, "used"),
				At: quantity.StoreTime(int64(w.now) - int64(units(t, "ago")*quantity.Units(second)))}}}
	for _, peer := range c.KnownPeers {
		c.Rows = append(c.Rows, algorithms.RememberedRow{Cell: w.cell(t, n), Peer: peer,
			Lent: units(t, "lent"), Returned: units(t, "returned")})
	}
	same(t, w, i, c, func(s *store.Store) []store.Result[algorithms.Restored] {
		return s.Restore(context.Background(), []algorithms.Restore{c})
	})
}

func (w *worlds) book(t *rapid.T, i int) {
	n, key, known := w.bucket(t)
	c := []algorithms.Book{{Fence: w.guard(t), Target: algorithms.Target{Key: key,
		Terms: modelled[n], ExistsUntil: known},
		Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"),
		Window: quantity.Cell(int64(w.now)/modelled[n].Window - rapid.Int64Range(0, 1).Draw(t,
			"windows ago")), Units: units(t, "units")}}
	r := same(t, w, i, c,
		func(s *store.Store) []store.Result[algorithms.Booked] {
			return s.Book(context.Background(), c)
		})
	w.saw(n, algorithms.State{}, r[0].Value.LostAt)
}

func (w *worlds) refund(t *rapid.T, i int) {
	if len(w.receipts) == 0 {
		return
	}
	c := w.receipts[max(len(w.receipts)-1-rapid.IntRange(0, 3).Draw(t, "receipt"), 0)]
	c.Fence = w.guard(t)
	same(t, w, i, c, func(s *store.Store) []store.Result[algorithms.Settled] {
		return one(s.Settle(context.Background(), c))
	})
}

// step sets the clock of both servers.
func (w *worlds) step(by int64) {
	w.now += quantity.StoreTime(by)
	w.driven.Set(time.UnixMicro(int64(w.now)))
}

// copy copies the servers' present data, which may be promoted later.
func (w *worlds) copy() {
	w.names++
	replid := fmt.Sprint("replica ", w.names)
	driven, server := w.driven.Copy(), w.server.Replica(replid)
	w.copies = append(w.copies, func() {
		w.driven.Promote(driven, replid)
		w.server = server
		w.ways[0].SetServer(server)
		w.ways[1].SetServer(server)
	})
}

// lose has the servers lose something, or makes a copy to be found later.
func (w *worlds) lose(t *rapid.T) {
	switch rapid.SampledFrom([]int{0, 1, 2, 2, 2, 3, 3, 4, 4}).Draw(t, "lose") {
	case 0:
		w.driven.Flush()
		w.server.Flush()
	case 1:
		w.driven.Restart()
		w.server.Restart()
		w.driven.Rename(w.server.Replid())
	case 2:
		w.copy()
	case 3:
		if len(w.copies) > 0 {
			n := rapid.IntRange(0, len(w.copies)-1).Draw(t, "copy")
			w.copies[n]()
			w.copies = slices.Delete(w.copies, n, n+1)
		}
	default:
		key := rapid.SampledFrom([]string{store.TokenKey(store.Whole), modelledKey(0),
			modelledKey(1), modelledKey(3), store.OnceKey(store.Whole, "00")}).Draw(t, "key")
		w.driven.Delete(key)
		w.server.Delete(key)
	}
}

// another has a version of quotad that writes another layout open the servers, and then perhaps
// starts nodes of this version again, which take them back.
func (w *worlds) another(t *rapid.T) {
	const none = 1<<64 - 1
	ledger := w.server.Ledger(store.Whole)
	stands := ledger.Open(w.now, algorithms.Open{Expected: none, Generation: none})
	c := algorithms.Open{Expected: stands.Generation, Generation: stands.Generation + 1,
		Region: "eu", Epoch: w.epoch, Secret: "another", Replid: w.server.Replid(),
		Layout: rapid.SampledFrom([]int64{algorithms.Layout - 1, algorithms.Layout + 1}).Draw(t,
			"layout")}
	client := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(w.driven.URL(), "redis://")})
	defer func() { _ = client.Close() }()
	reply, err := client.Eval(context.Background(), algorithms.OpenScript.Source,
		[]string{store.TokenKey(store.Whole)}, c.Args()...).Result()
	suite.Must(t, err)
	got, err := c.Parse(reply)
	want := ledger.Open(w.now, c)
	if !want.OK { // what stands was opened by nodes, each of which made up a secret
		got.Secret, want.Secret = "", ""
	}
	if err != nil || got != want {
		t.Fatalf("another version opened %+v, %v; twin %+v", got, err, want)
	}
	for i := range w.stores {
		if rapid.Bool().Draw(t, "started again") {
			w.start(t, i)
			w.open(t, i)
		}
	}
}

// actions are the possible actions, by name. A node is drawn for each call.
func (w *worlds) actions() map[string]func(*rapid.T) {
	ctx := context.Background()
	node := func(f func(*rapid.T, int)) func(*rapid.T) {
		return func(t *rapid.T) { f(t, rapid.IntRange(0, 1).Draw(t, "node")) }
	}
	rarely := func(f func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "rare") == 0 {
				f(t)
			}
		}
	}
	return map[string]func(*rapid.T){
		"open": node(w.open), "open too": node(w.open), "decide": node(w.decide),
		"decide too": node(w.decide), "lend": node(w.lend), "credit": node(w.credit),
		"assign": node(w.assign),
		"recall": node(w.recall), "restore": node(w.restore), "book": node(w.book),
		"refund": node(w.refund), "lose": w.lose, "another version": rarely(w.another),
		"inspect": node(func(t *rapid.T, i int) {
			n, key, _ := w.bucket(t)
			c := algorithms.Inspect{Fence: w.guard(t), Target: algorithms.Target{Key: key,
				Terms: modelled[n]}}
			same(t, w, i, c, func(s *store.Store) []store.Result[algorithms.Inspected] {
				return one(s.Inspect(ctx, c))
			})
		}),
		"reset": rarely(node(func(t *rapid.T, i int) {
			n, key, known := w.bucket(t)
			c := algorithms.Reset{Fence: w.guard(t), Target: algorithms.Target{Key: key,
				Terms: modelled[n], ExistsUntil: known}}
			same(t, w, i, c, func(s *store.Store) []store.Result[algorithms.Cleared] {
				return one(s.Reset(ctx, c))
			})
		})),
		"beat": node(func(t *rapid.T, i int) {
			epoch := w.guard(t).Epoch
			same(t, w, i, epoch, func(s *store.Store) []store.Result[bool] {
				return one(true, s.Beat(ctx, epoch))
			})
		}),
		"note": node(func(t *rapid.T, i int) {
			text := fmt.Sprint(w.now)
			same(t, w, i, text, func(s *store.Store) []store.Result[string] {
				return one(s.Note(ctx, "n1", text))
			})
		}),
		"adopt": rarely(node(func(t *rapid.T, i int) {
			epoch := rapid.SampledFrom([]string{"1-a", "1-b", "2-b", "3-c"}).Draw(t, "epoch")
			r := same(t, w, i, epoch,
				func(s *store.Store) []store.Result[quantity.StoreTime] { return one(s.Adopt(ctx, epoch)) })
			if r[0].Err == nil {
				w.epoch = epoch
			}
		})),
		"clock": func(t *rapid.T) {
			w.step(rapid.SampledFrom([]int64{1, 1000, second, 7 * second, 50 * second, 100 * second,
				-20 * second, 30 * 86400 * second, 4 * 365 * 86400 * second}).Draw(t, "step"))
		},
		"skew": rarely(func(t *rapid.T) {
			w.skew[rapid.IntRange(0, 1).Draw(t, "node")] = rapid.SampledFrom([]int64{0, 0, 5000,
				-20 * second, 7200 * second}).Draw(t, "skew")
		}),
		"out of reach": rarely(node(func(t *rapid.T, i int) {
			w.driven.SetDown(true)
			w.server.SetDown(true)
			same(t, w, i, "reach",
				func(s *store.Store) []store.Result[bool] {
					return one(true, s.Reach(ctx, store.Whole))
				})
			rapid.SampledFrom([]func(*rapid.T, int){w.open, w.decide, w.lend}).Draw(t, "call")(t, i)
			w.driven.SetDown(false)
			w.server.SetDown(false)
		})),
		"time out": rarely(node(func(t *rapid.T, i int) {
			if rapid.Bool().Draw(t, "ran") {
				w.driven.LoseReply(1)
				w.server.LoseReply(1)
			} else {
				w.driven.FailNext(2)
				w.server.FailNext(2)
			}
			rapid.SampledFrom([]func(*rapid.T,
				int){w.open, w.decide, w.lend, w.credit, w.book}).Draw(t, "call")(t, i)
			w.driven.outage, w.server.outage = outage{}, outage{}
		})),
	}
}

// TestTwinEqualsRedis compares stores on a twin with stores on an embedded Redis. Except for the
// server, both are production code. There are opens by two nodes, losses of all data, of the token
// and of single keys, promoted copies, unreachable servers, lost calls and replies, clocks that
// step both ways, and nodes' clocks that are apart.
func TestTwinEqualsRedis(t *testing.T) {
	d, err := StartDriven(time.Now(), "r")
	suite.Must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	suite.Check(t, func(t *rapid.T) {
		w := begin(t, d)
		defer func() { _ = errors.Join(w.stores[0].Close(), w.stores[1].Close()) }()
		w.open(t, 0)
		t.Repeat(w.actions())
	})
}
