//go:build !race

package algorithms_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// lua runs the production scripts. With ownClock their TIME is the one that the test has set.
type lua struct {
	client   *redis.Client
	ownClock bool
}

func newLua(t *testing.T, s *servers.Server) *lua {
	return &lua{client: fixtures.Operator(t, s), ownClock: true}
}

const token = "token"

func (l *lua) setTime(t rapid.TB, now quantity.StoreTime) {
	if err := l.client.HSet(context.Background(), "clock", "s", int64(now/1_000_000), "us",
		int64(now%1_000_000)).Err(); err != nil {
		t.Fatalf("set the clock: %v", err)
	}
}

func (l *lua) eval(t rapid.TB, s algorithms.Script, args []any, keys ...string) any {
	reply, err := l.run(s, args, keys...)
	if err != nil {
		t.Fatalf("script %s: %v", s.Name, err)
	}
	return reply
}

// run runs a script, which may fail.
func (l *lua) run(s algorithms.Script, args []any, keys ...string) (any, error) {
	source := s.Source
	if l.ownClock {
		source = strings.ReplaceAll(source, "redis.call('TIME')",
			"redis.call('HMGET', 'clock', 's', 'us')")
		// so that few entries make many pieces
		source = strings.ReplaceAll(source, "local ENTRIES = 64", "local ENTRIES = 3")
	}
	return l.client.Eval(context.Background(), source, append([]string{token}, keys...),
		args...).Result()
}

// must returns a parsed reply.
func must[R any](t rapid.TB) func(R, error) R {
	return func(r R, err error) R {
		if err != nil {
			t.Fatalf("parse a reply: %v", err)
		}
		return r
	}
}

func same(t rapid.TB, what string, call, got, want any) {
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s %+v:\nLua  %+v\ntwin %+v", what, call, got, want)
	}
}

// history drives the scripts and the twin through the same random calls.
type history struct {
	*lua
	twin     *algorithms.Twin
	now      quantity.StoreTime
	guard    algorithms.Fence
	buckets  map[string]algorithms.Terms
	receipts []algorithms.Settle
	// when a bucket was last used; long after that the twin has dropped it, and a Redis perhaps not
	// yet
	touched map[string]quantity.StoreTime
	lostAt  map[string]quantity.StoreTime // time of the loss, as the last reply reported it
	told    map[string]quantity.StoreTime // until when a bucket exists, as any reply said at most
}

const window = 1000 // microseconds

// drawTerms draws the terms of a bucket: any of the kinds, cells as long as the window or shorter,
// ticks that divide it or not.
func drawTerms(t *rapid.T, kinds []algorithms.Kind, entitlement quantity.Units) algorithms.Terms {
	terms := algorithms.Terms{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
		Window: window, Cell: window, Tick: 1,
		Entitlement: entitlement}
	terms.Recovered = !terms.Kind.Bucket() && rapid.Bool().Draw(t, "recovered")
	switch {
	case terms.Kind == algorithms.FixedWindow && rapid.Bool().Draw(t, "calendar"):
		terms.Calendar = uneven{}
	case terms.Kind.Sliding():
		terms.ClockMargin = rapid.SampledFrom([]int64{0, 0, 150, 2500}).Draw(t, "guard")
		if terms.Kind == algorithms.SlidingWindowLog {
			terms.Cell = rapid.SampledFrom([]int64{1000, 500, 334}).Draw(t, "cell length")
		} else {
			terms.Tick = rapid.SampledFrom([]int64{1, 10, 300}).Draw(t, "tick")
		}
	case terms.Kind.Bucket():
		if entitlement > 0 { // who has no refill has no capacity
			terms.Burst = quantity.Units(rapid.SampledFrom([]int64{1, 5, 20}).Draw(t, "burst"))
		}
		terms.Cell = rapid.SampledFrom([]int64{1000, 400, 2000}).Draw(t, "cell length")
		terms.Tick = rapid.SampledFrom([]int64{1, 10, 200}).Draw(t, "tick")
	}
	return terms
}

// uneven is a calendar whose periods take turns in having these lengths, in microseconds. One is
// empty. Nodes with other rules see them begin at other times.
type uneven struct{ shift int64 }

var unevenLengths = []int64{window, 1300, 0, 700, window}

const unevenRound, firstUneven = 4 * window, 100_000

func (u uneven) At(t quantity.StoreTime) quantity.Cell {
	since := int64(t) - u.shift
	cell, left := since/unevenRound*int64(len(unevenLengths)), since%unevenRound
	for i, length := range unevenLengths {
		if left < length {
			return quantity.Cell(firstUneven + cell + int64(i))
		}
		left -= length
	}
	panic("the lengths add up to a round")
}

func (u uneven) Opens(cell quantity.Cell) quantity.StoreTime {
	n := int64(cell) - firstUneven
	rounds, rest := n/int64(len(unevenLengths)), n%int64(len(unevenLengths))
	if rest < 0 {
		rounds, rest = rounds-1, rest+int64(len(unevenLengths))
	}
	opens := rounds*unevenRound + u.shift
	for _, length := range unevenLengths[:rest] {
		opens += length
	}
	return quantity.StoreTime(opens)
}

func (h *history) terms(t *rapid.T, key string) algorithms.Terms {
	terms := h.buckets[key]
	if h.touched[key] == 0 {
		h.touched[key] = h.now
	}
	if rapid.IntRange(0, 19).Draw(t, "policy changed") == 0 {
		if more := rapid.Bool().Draw(t, "more"); more {
			terms.Entitlement += 2
		} else {
			terms.Entitlement = (terms.Entitlement + 1) / 2
		}
		terms.Burst *= quantity.Units(rapid.Int64Range(1, 3).Draw(t, "more burst"))
	}
	if terms.Calendar != nil && rapid.IntRange(0, 4).Draw(t, "other rules") == 0 {
		terms.Calendar = uneven{shift: rapid.SampledFrom([]int64{-300, 300}).Draw(t, "shift")}
	}
	return terms
}

// known draws until when the bucket is known to exist.
func (h *history) known(t *rapid.T, key string) quantity.StoreTime {
	if h.now.Sub(h.touched[key]) > algorithms.KeySlack || !h.ownClock {
		return 0
	}
	h.touched[key] = h.now
	return quantity.StoreTime(rapid.SampledFrom([]quantity.StoreTime{0, 0, h.now,
		h.now + 1}).Draw(t, "known"))
}

// exists notes until when a reply says that a bucket exists. Of a window no limit changes that.
func (h *history) exists(key string, s algorithms.State) {
	if h.buckets[key].Kind.Bucket() {
		h.told[key] = max(h.told[key], s.ExistsUntil)
	}
}

// lasts checks that no bucket ends before the time until which it exists as any reply said, and
// KeySlack more, whatever its terms have become: who remembers that would take it for deleted.
func (h *history) lasts(t *rapid.T) {
	beat := h.twin.Clone().Beat(h.now, algorithms.Beat{Fence: h.guard})
	if beat.Status != algorithms.StatusOK { // it answers nobody, so nobody knows its time
		return
	}
	now := beat.Now
	for _, key := range []string{"a", "b"} {
		until, twin := h.told[key]+algorithms.KeySlack, h.twin.Clone()
		if h.told[key] <= now {
			continue
		}
		if twin.Expire(until); !twin.Holds(key) {
			t.Fatalf("bucket %s of the twin ends before %d", key, until)
		}
		ends, err := h.client.PExpireTime(context.Background(), key).Result()
		ends += time.Millisecond // the embedded Redis shows up to that less than it was given
		if err != nil || quantity.StoreTime(ends.Microseconds()) < until {
			t.Fatalf("bucket %s ends at %d us, want %d; %v", key, ends.Microseconds(), until, err)
		}
	}
}

// lost notes when a bucket was lost, as a reply says.
func (h *history) lost(key string, s algorithms.Status, at quantity.StoreTime) {
	if s == algorithms.StatusLost {
		h.lostAt[key] = at
	}
}

func (h *history) key(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "bucket")
}

func (h *history) peer(t *rapid.T) string {
	return rapid.SampledFrom([]string{"eu-west", "ap-south"}).Draw(t, "peer")
}

func (h *history) cell(t *rapid.T, key string) quantity.Cell {
	return h.buckets[key].CellAt(h.now) + quantity.Cell(rapid.SampledFrom([]int64{0, 0, 0, 0, 1,
		1, 1, -1, 2}).Draw(t, "cell"))
}

func (h *history) units(t *rapid.T, what string) quantity.Units {
	return quantity.Units(rapid.Int64Range(0, 12).Draw(t, what))
}

func (h *history) decide(t *rapid.T) {
	var c algorithms.Items
	for range rapid.IntRange(1, 5).Draw(t, "items") {
		if !c.Add(h.item(t)) {
			break
		}
	}
	got := must[algorithms.ItemsDecided](t)(c.Parse(h.eval(t, algorithms.DecideScript, c.Args(),
		c.Keys()...)))
	now := h.now
	if !h.ownClock {
		for _, d := range got.Each {
			if !d.Repeated {
				now = max(now, d.Now)
			}
		}
	}
	now = h.time(now)
	same(t, "decide", c, got, h.twin.DecideItems(now, c))
	for i, d := range c.Each {
		h.decided(t, d, got.Each[i])
	}
}

// item draws a list of requests on the same buckets.
func (h *history) item(t *rapid.T) algorithms.Decide {
	c := algorithms.Decide{Fence: h.guard, Commit: rapid.IntRange(0, 5).Draw(t, "commit") > 0}
	for _, key := range rapid.SampledFrom([][]string{{"a"}, {"b"}, {"a", "b"}}).Draw(t, "buckets") {
		mode := rapid.IntRange(0, 8).Draw(t, "mode")
		b := algorithms.LimitTarget{Target: algorithms.Target{Key: key, Terms: h.terms(t, key),
			ExistsUntil: h.known(t, key)}, Shadow: mode == 0, Alternative: mode > 4 && mode < 7}
		// What is owed without a rate is forgotten with the key, when Redis alone knows.
		if mode > 6 && h.buckets[key].Entitlement > 0 {
			b.Always, b.MostOwed = true, rapid.SampledFrom([]quantity.Units{0, 3, 40, 1000}).Draw(t,
				"most owed")
		}
		c.Buckets = append(c.Buckets, b)
	}
	cost := rapid.SampledFrom([]quantity.Units{1, 1, 1, 2, 3, 7, 11, algorithms.MaxUnits,
		algorithms.MaxUnits + 1, 0, -1})
	c.Costs = rapid.SliceOfN(cost, 1, 4).Draw(t, "costs")
	if rapid.Bool().Draw(t, "one cost") {
		c.Costs = slices.Repeat(c.Costs[:1], len(c.Costs))
	}
	if rapid.IntRange(0, 4).Draw(t, "per bucket") == 0 {
		c.PerBucket = true
		c.Costs = rapid.SliceOfN(cost, len(c.Buckets), len(c.Buckets)).Draw(t, "costs of buckets")
	}
	h.parts(t, &c)
	if c.Once = rapid.SampledFrom([]string{"", "", "", "once-1", "once-2"}).Draw(t,
		"once"); c.Once != "" {
		// as the caller does: another request is not remembered under the same key
		for _, b := range c.Buckets {
			c.Once += b.Key
		}
		if !c.PerBucket {
			c.Costs = c.Costs[:1]
			c.Parts = c.Parts[:min(len(c.Parts), len(c.Buckets))]
		}
	}
	return c
}

// parts draws parts of the rights for some items: of each request one for each bucket.
func (h *history) parts(t *rapid.T, c *algorithms.Decide) {
	if rapid.IntRange(0, 2).Draw(t, "classes") > 0 {
		return
	}
	requests := len(c.Costs)
	if c.PerBucket {
		requests = 1
	}
	part := rapid.SampledFrom([]quantity.PPM{algorithms.Whole, algorithms.Whole, 600_000, 600_000, 333_333, 999_999, 1, 0})
	c.Parts = rapid.SliceOfN(part, requests*len(c.Buckets), requests*len(c.Buckets)).Draw(t, "parts")
	if rapid.Bool().Draw(t, "one part") {
		c.Parts = slices.Repeat(c.Parts[:1], len(c.Parts))
	}
}

// decided notes what was lost, and what may be refunded later.
func (h *history) decided(t *rapid.T, c algorithms.Decide, got algorithms.Decided) {
	if len(c.Buckets) == 1 {
		h.lost(c.Buckets[0].Key, got.Status, got.LostAt)
	}
	for i, s := range got.Buckets {
		if !got.Repeated {
			h.exists(c.Buckets[i].Key, s)
		}
	}
	if got.Status == algorithms.StatusOK && got.Answers[0].Admitted && c.Commit && c.Costs[0] > 0 {
		r := algorithms.Settle{Once: c.Once, Receipt: fmt.Sprintf("receipt-%d", len(h.receipts)),
			At: got.Now, Cost: c.Costs[0]}
		if rapid.IntRange(0, 4).Draw(t, "refund is not remembered") == 0 {
			r.Receipt = ""
		}
		for i, b := range c.Buckets {
			if got.Answers[0].Verdicts[i].Retry != 0 || c.Cost(0, i) != r.Cost {
				continue // a limit that would have denied, or is another refund's
			}
			r.Charges = append(r.Charges,
				algorithms.Charge{Target: algorithms.Target{Key: b.Key, Terms: b.Terms,
					ExistsUntil: h.known(t, b.Key)}, Cell: got.Buckets[i].Cell})
		}
		h.receipts = append(h.receipts, r)
	}
}

func (h *history) refund(t *rapid.T) {
	if len(h.receipts) == 0 || rapid.IntRange(0, 3).Draw(t, "what was charged last") == 0 {
		h.refundNewest(t)
		return
	}
	at := max(len(h.receipts)-1-rapid.IntRange(0, 5).Draw(t, "receipt"), 0)
	c := h.receipts[at]
	c.Fence = h.guard
	c.Used = max(quantity.Units(rapid.Int64Range(-2, 6).Draw(t, "used"))*c.Cost/2+quantity.Units(rapid.IntRange(-1, 1).Draw(t, "and")), 0)
	c.Charges = slices.Clone(c.Charges)
	for i := range c.Charges {
		c.Charges[i].Until = max(h.now.Add(rapid.SampledFrom([]int64{-1_000_000, -1, 0, 1, 5_000_000}).Draw(t, "until")), 0)
		c.Charges[i].MostOwed = quantity.Units(rapid.SampledFrom([]int{0, 1, 50, 1000}).Draw(t, "most owed"))
		if rapid.IntRange(0, 2).Draw(t, "at any time") > 0 {
			c.Charges[i].Until = 0
		}
	}
	if len(c.Charges) > 0 && rapid.IntRange(0, 9).Draw(t, "limit gone") == 0 {
		c.Charges[0].Terms = algorithms.Terms{}
	}
	got := must[algorithms.Settled](t)(c.Parse(h.eval(t, algorithms.SettleScript, c.Args(),
		c.Keys()...)))
	if !got.Repeated && !h.ownClock && got.Now.Sub(c.At) > algorithms.KeySlack {
		// On a busy machine so much time has passed that the server has forgotten an earlier refund.
		h.time(got.Now)
		h.receipts = slices.Delete(h.receipts, at, at+1)
		return
	}
	if got.Repeated && !h.ownClock {
		same(t, "refund", c, got, h.twin.Settle(h.now, c))
		return
	}
	same(t, "refund", c, got, h.twin.Settle(h.time(got.Now), c))
}

// refundNewest takes back what was charged last of a bucket.
func (h *history) refundNewest(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Settle{Fence: h.guard, Once: "none",
		Cost: rapid.SampledFrom([]quantity.Units{1, 2, 5, 30, algorithms.MaxUnits}).Draw(t, "units"),
		Charges: []algorithms.Charge{{Target: algorithms.Target{Key: key, Terms: h.terms(t, key),
			ExistsUntil: h.known(t, key)}}}}
	got := must[algorithms.Settled](t)(c.Parse(h.eval(t, algorithms.SettleScript, c.Args(),
		c.Keys()...)))
	same(t, "refund what was charged last", c, got, h.twin.Settle(h.time(got.Now), c))
}

func (h *history) reset(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Reset{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key), ExistsUntil: h.known(t, key)}}
	got := must[algorithms.Cleared](t)(c.Parse(h.eval(t, algorithms.ResetScript, c.Args(), key)))
	same(t, "reset", c, got, h.twin.Reset(h.time(got.Now), c))
	h.exists(key, got.State)
}

func (h *history) lend(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Lend{Fence: h.guard, Target: algorithms.Target{Key: key, Terms: h.terms(t, key),
		ExistsUntil: h.known(t, key)},
		Debit: algorithms.Debit{Peer: h.peer(t), Cell: h.cell(t, key),
			Returned: h.units(t, "returned"), Lent: h.units(t, "lent"),
			Kept: quantity.Units(rapid.Int64Range(0, 3).Draw(t, "kept")), Cap: h.units(t, "cap"),
			Burst: h.units(t, "burst"), KeptBurst: quantity.Units(rapid.Int64Range(0, 3).Draw(t,
				"kept burst")), CapBurst: h.units(t, "cap burst"),
			LeastBurst: quantity.Units(rapid.Int64Range(0, 3).Draw(t, "least burst"))}}
	got := must[algorithms.Given](t)(c.Parse(h.eval(t, algorithms.LendScript, c.Args(), key)))
	same(t, "lend", c, got, h.twin.Lend(h.time(got.Now), c))
	h.exists(key, got.State)
	h.lost(key, got.Status, got.LostAt)
}

func (h *history) credit(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Credit{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key), ExistsUntil: h.known(t, key)},
		Announcement: algorithms.Announcement{Peer: h.peer(t),
			Cell:           h.cell(t, key),
			PeerGeneration: rapid.SampledFrom([]uint64{3, 3, 3, 3, 2, 4}).Draw(t, "peer generation"),
			Lent:           h.units(t, "lent"), Returned: h.units(t, "returned"),
			Most: 12 - h.units(t, "below the most")/4, Burst: h.units(t, "burst"),
			MostBurst: 12 - h.units(t, "below the most burst")/4,
			At: quantity.StoreTime(rapid.SampledFrom([]int64{0, 1,
				time.Now().UnixMicro() - 100_000, time.Now().UnixMicro() + 10_000_000}).Draw(t, "at"))}}
	got := must[algorithms.Credited](t)(c.Parse(h.eval(t, algorithms.CreditScript, c.Args(), key)))
	same(t, "credit", c, got, h.twin.Credit(h.time(got.Now), c))
	h.exists(key, got.State)
	h.lost(key, got.Status, got.LostAt)
}

func (h *history) inspect(t *rapid.T) {
	key := h.key(t)
	c := algorithms.Inspect{Fence: h.guard, Target: algorithms.Target{Key: key,
		Terms: h.terms(t, key)}}
	got := must[algorithms.Inspected](t)(c.Parse(h.eval(t, algorithms.InspectScript, c.Args(),
		key)))
	same(t, "inspect", c, got, h.twin.Inspect(h.time(got.Now), c))
	h.exists(key, got.State)
}

// time is what the twin's clock shows: the history's own, or where the real TIME is used the
// script's.
func (h *history) time(scripts quantity.StoreTime) quantity.StoreTime {
	if h.ownClock || scripts == 0 {
		return h.now
	}
	h.now = scripts
	h.guard.Clock = scripts
	return scripts
}

func (h *history) open(t *rapid.T, expected, generation uint64, lost bool) {
	c := algorithms.Open{Expected: expected, Generation: generation, Region: "us-east",
		Epoch: h.guard.Epoch, Lost: lost,
		Secret: "s", Replid: fmt.Sprint("r", generation),
		Layout: rapid.Int64Range(0, 2).Draw(t, "layout")}
	if lost {
		c.Seen = h.now.Add(rapid.Int64Range(-3*window, 3*window).Draw(t, "seen"))
	}
	if expected > 0 && rapid.IntRange(0, 3).Draw(t, "marked") == 0 {
		c.Mark = h.now.Add(rapid.Int64Range(-1, 1).Draw(t, "mark"))
	}
	got := must[algorithms.Opened](t)(c.Parse(h.eval(t, algorithms.OpenScript, c.Args())))
	same(t, "open", c, got, h.twin.Open(h.time(got.Begun), c))
	if got.OK {
		h.guard.Generation = got.Generation
	}
	for key, of := range h.buckets { // buckets never say that they must be restored
		if of.Kind == algorithms.TokenBucket && got.OK && lost {
			h.lostAt[key] = got.LostAt
		}
	}
}

// clock moves the store's clock, or takes it apart from the node's.
func (h *history) clock(t *rapid.T) {
	h.now += quantity.StoreTime(rapid.SampledFrom([]int64{1, 10, 300, 999, 1000,
		2500, -700, -5000, 3_700_000_000}).Draw(t, "step"))
	h.guard.Clock = h.now.Add(rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 0, 5000,
		2 * algorithms.MaxClockStep}).Draw(t, "skew"))
	h.setTime(t, h.now)
}

// reopen begins a generation now and then, of a store that lost everything or nothing.
func (h *history) reopen(t *rapid.T) {
	if rapid.IntRange(0, 5).Draw(t, "rare") > 0 {
		return
	}
	expected := h.guard.Generation
	if rapid.Bool().Draw(t, "flushed") {
		h.client.FlushAll(context.Background())
		h.twin.Flush()
		clear(h.told)
		h.setTime(t, h.now)
		expected = 0
	}
	h.open(t, expected, h.guard.Generation+1, rapid.Bool().Draw(t, "lost"))
}

func begin(t *rapid.T, l *lua, lost bool, kinds ...algorithms.Kind) *history {
	if err := l.client.FlushAll(context.Background()).Err(); err != nil {
		t.Fatalf("flush: %v", err)
	}
	h := &history{lua: l, twin: &algorithms.Twin{}, now: 1_800_000_000_000_000,
		touched: map[string]quantity.StoreTime{}, lostAt: map[string]quantity.StoreTime{},
		told: map[string]quantity.StoreTime{},
		buckets: map[string]algorithms.Terms{"a": drawTerms(t, kinds, 10),
			"b": drawTerms(t, kinds,
				quantity.Units(rapid.Int64Range(0, 4).Draw(t, "small entitlement")))}}
	h.guard = algorithms.Fence{Epoch: "1-abc", Clock: h.now}
	h.setTime(t, h.now)
	h.open(t, 0, 1, lost)
	return h
}

func (h *history) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"decide": h.decide, "decide again": h.decide, "decide once more": h.decide, "lend": h.lend,
		"credit": h.credit, "assign": h.assign,
		"inspect": h.inspect, "refund": h.refund, "recall": h.recall, "restore": h.restore,
		"book": h.book, "delete": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "rare") == 0 {
				h.delete(t)
			}
		}, "reset": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "rare") == 0 {
				h.reset(t)
			}
		},
	}
}

// TestLuaEqualsTwin holds the scripts equal to the twin over random histories: shares changing in
// the middle, transfers for this cell and the next, several limits at once, clock steps both ways,
// losses and wrong guards.
func TestLuaEqualsTwin(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			l := newLua(t, start(t))
			suite.Check(t, func(t *rapid.T) {
				h := begin(t, l, rapid.Bool().Draw(t, "lost"), algorithms.Kinds...)
				actions := h.actions()
				actions["clock"], actions[""] = h.clock, h.lasts
				actions["guard"] = func(t *rapid.T) {
					right := h.guard
					h.guard.Generation += uint64(rapid.IntRange(0, 1).Draw(t, "generation"))
					h.guard.Epoch = rapid.SampledFrom([]string{"1-abc", "2-def"}).Draw(t, "epoch")
					answered := h.twin.Open(h.now, algorithms.Open{Expected: 1 << 63}).Answered
					h.guard.Seen = rapid.SampledFrom([]quantity.StoreTime{0, answered - 1, answered}).Draw(t, "seen")
					if rapid.IntRange(0, 5).Draw(t, "rare") == 0 {
						h.guard.Seen = rapid.SampledFrom([]quantity.StoreTime{answered + 1, answered + 2*window}).Draw(t, "more than that")
					}
					h.decide(t)
					h.guard = right
					// An older copy answers nobody. Mostly it is opened anew.
					older := h.twin.Open(h.now, algorithms.Open{Expected: 1 << 63}).Older
					if older && rapid.IntRange(0, 3).Draw(t, "open") > 0 {
						h.open(t, right.Generation, right.Generation+1, true)
					}
				}
				actions["adopt"] = func(t *rapid.T) {
					c := algorithms.Adopt{Generation: h.guard.Generation +
						uint64(rapid.IntRange(0, 1).Draw(t, "generation")),
						Epoch: rapid.SampledFrom([]string{"1-abc", "1-def", "2-def", "10-abc",
							"0-old", "none"}).Draw(t, "epoch")}
					got := must[algorithms.Adopted](t)(c.Parse(h.eval(t, algorithms.AdoptScript,
						c.Args())))
					same(t, "adopt", c, got, h.twin.Adopt(c))
					if got.OK {
						h.guard.Epoch = got.Epoch
					}
				}
				actions["reopen"] = h.reopen
				actions["nodes"] = func(t *rapid.T) {
					c := algorithms.Nodes{Generation: h.guard.Generation +
						uint64(rapid.IntRange(0, 1).Draw(t, "generation"))}
					same(t, "nodes", c, must[algorithms.NodeTimes](t)(c.Parse(h.eval(t,
						algorithms.NodesScript, c.Args()))), h.twin.Nodes(c))
				}
				actions["beat"] = func(t *rapid.T) {
					c := algorithms.Beat{Fence: h.guard}
					same(t, "beat", c, must[algorithms.Beaten](t)(c.Parse(h.eval(t,
						algorithms.BeatScript, c.Args()))), h.twin.Beat(h.now, c))
				}
				actions["note"] = func(t *rapid.T) {
					c := algorithms.Note{Generation: h.guard.Generation +
						uint64(rapid.IntRange(0, 1).Draw(t, "generation")),
						Name: rapid.SampledFrom([]string{"node:n1", "document:1-a"}).Draw(t, "name"),
						Text: fmt.Sprint(h.now)}
					same(t, "note", c, must[algorithms.Noted](t)(c.Parse(h.eval(t,
						algorithms.NoteScript, c.Args()))), h.twin.Note(c))
				}
				t.Repeat(actions)
			})
		})
	}
}

// TestLuaEqualsTwinInRealTime is the same with the server's own TIME, while cells really pass.
func TestLuaEqualsTwinInRealTime(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			l := newLua(t, start(t))
			l.ownClock = false
			suite.Check(t, func(t *rapid.T) {
				h := begin(t, l, false, algorithms.Kinds...) // the twin could not know the exact time of a loss
				now, err := l.client.Time(context.Background()).Result()
				if err != nil {
					t.Fatalf("time: %v", err)
				}
				h.time(quantity.StoreTime(now.UnixMicro()))
				t.Repeat(h.actions())
			})
		})
	}
}

// TestScriptsUseOnlyWhatEveryStoreHas rejects functions that the embedded Redis or a cluster lacks.
func TestScriptsUseOnlyWhatEveryStoreHas(t *testing.T) {
	all := []algorithms.Script{algorithms.DecideScript, algorithms.LendScript,
		algorithms.CreditScript,
		algorithms.InspectScript, algorithms.SettleScript, algorithms.ResetScript,
		algorithms.OpenScript, algorithms.AdoptScript, algorithms.NoteScript,
		algorithms.RecallScript, algorithms.RestoreScript, algorithms.BookScript,
		algorithms.AssignScript, algorithms.NodesScript}
	for _, s := range all {
		for _, bad := range []string{"bit.", "struct.", "cmsgpack.", "math.random", "os.", "io.",
			"table.unpack"} {
			if strings.Contains(s.Source, bad) {
				t.Errorf("script %s uses %s", s.Name, bad)
			}
		}
		for call := range strings.SplitSeq(s.Source, "redis.call(") {
			if fields := strings.Split(call, ","); len(fields) > 1 && strings.HasPrefix(fields[0],
				"'") {
				if arg := strings.TrimSpace(fields[1]); strings.HasPrefix(arg, "'") {
					t.Errorf("script %s touches the key %s that is not in KEYS", s.Name, arg)
				}
			}
		}
	}
}

func ExampleCellAt() {
	fmt.Println(algorithms.CellAt(1_800_000_000_999_999, 1_000_000))
	// Output: 1800000000
}
