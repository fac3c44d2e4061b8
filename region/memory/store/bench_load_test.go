package store

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// load is a state that a bucket is brought to, and a call that is made again and again on copies of
// it.
type load struct {
	only
	name  string
	limit quantity.Units
	calls quantity.Units       // calls on one copy: few enough that all end alike
	units quantity.Units       // units decided by one call; its time is divided by this
	bring func(*stage, bucket) // nil: each call is the first on its bucket
	// call makes the n-th call, n from 2 on. It returns the cell that the bucket was in, and
	// whether the call ended as it should.
	call func(st *stage, on bucket, n quantity.Units) (cell quantity.Cell, well bool)
}

const (
	usual = 1000 // units in a minute
	large = 20 * usual
)

var logOnly = only{algorithms.SlidingWindowLog}

// loads are what is measured of the scripts.
var loads = []load{
	{name: "bare EVALSHA", only: only{algorithms.FixedWindow}, limit: usual, calls: 200, units: 1,
		bring: used(1), call: bare},
	{name: "first", limit: usual, calls: 200, units: 1, call: admits(1)},
	{name: "admitted", limit: usual, calls: 200, units: 1, bring: used(1), call: admits(1)},
	{name: "denied", limit: usual, calls: 200, units: 1, bring: used(usual), call: denies(10, 1)},
	{name: "admitted, rows of 2 cells", limit: usual, calls: 200, units: 1, bring: rows(1, false),
		call: admits(1)},
	{name: "denied, rows of 2 cells", limit: usual, calls: 200, units: 1, bring: rows(usual, false),
		call: denies(100, 1)},
	{name: "admitted, all rows", only: sliding, limit: usual, calls: 200, units: 1,
		bring: rows(1, true), call: admits(1)},
	{name: "denied, all rows", only: sliding, limit: usual, calls: 100, units: 1,
		bring: rows(usual, true), call: denies(100, 1)},
	{name: "each of 64 admitted", limit: usual, calls: 9, units: algorithms.MaxCosts, bring: used(1),
		call: admits(algorithms.MaxCosts)},
	{name: "each of 64 denied", limit: usual, calls: 9, units: algorithms.MaxCosts, bring: used(usual),
		call: denies(10, algorithms.MaxCosts)},
	{name: "admitted after 1000", only: logOnly, limit: large, calls: 200, units: 1,
		bring: used(usual), call: admits(1)},
	{name: "admitted after 10000", only: logOnly, limit: large, calls: 200, units: 1,
		bring: used(large / 2), call: admits(1)},
	{name: "denied 1000 of 1000", only: logOnly, limit: usual, calls: 20, units: 1,
		bring: used(usual), call: denies(usual, 1)},
	{name: "denied 10000 of 10000", only: logOnly, limit: large / 2, calls: 5, units: 1,
		bring: used(large / 2), call: denies(large/2, 1)},
	{name: "of a class", only: owing, limit: usual, calls: 200, units: 1, bring: used(1), call: ofClass(1, true)},
	{name: "of a class, denied", only: owing, limit: usual, calls: 200, units: 1, bring: used(usual * 6 / 10), call: ofClass(10, false)},
	{name: "question", only: owing, limit: usual, calls: 200, units: 1, bring: used(1), call: charges(false)},
	{name: "charge", only: owing, limit: usual, calls: 200, units: 1, bring: used(1), call: charges(true)},
	{name: "charge, owed", only: owing, limit: usual, calls: 200, units: 1, bring: used(usual), call: charges(true)},
	{name: "given back after 10000", only: logOnly, limit: large, calls: 5, units: 1,
		bring: used(large / 2), call: settles(0)},
	{name: "given back", only: owing, limit: usual, calls: 200, units: 1, bring: used(usual / 2),
		call: settles(0)},
	{name: "charged beyond", only: owing, limit: usual, calls: 200, units: 1, bring: used(usual / 2),
		call: settles(2)},
	{name: "lend", limit: usual, calls: 200, units: 1, bring: moved(lends), call: lends},
	{name: "credit", limit: usual, calls: 200, units: 1, bring: moved(credits), call: credits},
}

var sliding = only{algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog}

// owing are the kinds that may owe, and whose charges can be given back; a turn in a queue cannot.
var owing = only{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
	algorithms.SlidingWindowLog, algorithms.TokenBucket}

// used brings a bucket to where the given units were admitted one by one.
func used(units int) func(*stage, bucket) {
	return func(st *stage, on bucket) { st.singly(on, units) }
}

// rows brings a bucket to where the given units were admitted and it has rows of two peers.
func rows(units int, past bool) func(*stage, bucket) {
	return func(st *stage, on bucket) {
		st.singly(on, units)
		st.layRows(on, past)
	}
}

// moved brings a bucket to where rights were moved once.
func moved(call func(*stage, bucket, quantity.Units) (quantity.Cell, bool)) func(*stage, bucket) {
	return func(st *stage, on bucket) { call(st, on, 1) }
}

// admits decides a number of requests of one unit in one call.
func admits(requests int) func(*stage, bucket, quantity.Units) (quantity.Cell, bool) {
	costs := slices.Repeat([]quantity.Units{1}, requests)
	return func(st *stage, on bucket, _ quantity.Units) (quantity.Cell, bool) {
		d := st.decide(on, costs...)
		return d.Buckets[0].Cell, admitted(d) == quantity.Units(requests)
	}
}

// denies decides a number of requests of a cost that does not fit yet but later will.
func denies(cost quantity.Units, requests int) func(*stage, bucket, quantity.Units) (quantity.Cell,
	bool) {
	costs := slices.Repeat([]quantity.Units{cost}, requests)
	return func(st *stage, on bucket, _ quantity.Units) (quantity.Cell, bool) {
		d := st.decide(on, costs...)
		return d.Buckets[0].Cell, admitted(d) == 0 && d.Answers[0].Verdicts[0].Retry > 0
	}
}

// lends and credits move one unit more than the call before.
func lends(st *stage, on bucket, n quantity.Units) (quantity.Cell, bool) {
	cell := quantity.Cell(time.Now().UnixMicro() / on.terms.Cell)
	g := lend(st.b, st.Store, algorithms.Lend{Fence: under(epoch),
		Target: algorithms.Target{Key: BucketKey(Whole, on.id), Terms: on.terms},
		Debit: algorithms.Debit{Peer: "us-east",
			Cell: cell, Lent: n, Cap: usual}})
	return cell, g.Status == algorithms.StatusOK && g.Row.Lent == n
}

func credits(st *stage, on bucket, n quantity.Units) (quantity.Cell, bool) {
	cell := quantity.Cell(time.Now().UnixMicro() / on.terms.Cell)
	g := credit(st.b, st.Store, algorithms.Credit{Fence: under(epoch),
		Target: algorithms.Target{Key: BucketKey(Whole, on.id), Terms: on.terms},
		Announcement: algorithms.Announcement{Peer: "us-east",
			PeerGeneration: 1, Cell: cell, Lent: n, Most: usual}})
	return cell, g.Status == algorithms.StatusOK && g.Row.Borrowed == n
}

// ofClass decides a request of a class that may use 0.6 of the rights, of a cost that fits or later
// will.
func ofClass(cost quantity.Units, fits bool) func(*stage, bucket, quantity.Units) (quantity.Cell, bool) {
	return func(st *stage, on bucket, _ quantity.Units) (quantity.Cell, bool) {
		d := decide(st.b, st.Store, algorithms.Decide{Fence: under(epoch), Commit: true, Costs: []quantity.Units{cost},
			Parts: []quantity.PPM{600_000}, Buckets: []algorithms.LimitTarget{{
				Target: algorithms.Target{Key: BucketKey(Whole, on.id), Terms: on.terms}}}})
		return d.Buckets[0].Cell, (admitted(d) == cost) == fits
	}
}

// charges asks about a unit whose cost is known only afterwards, or charges it whatever is left.
func charges(commit bool) func(*stage, bucket, quantity.Units) (quantity.Cell, bool) {
	return func(st *stage, on bucket, _ quantity.Units) (quantity.Cell, bool) {
		d := must(st.b, st.Decide(context.Background(), []algorithms.Decide{{Fence: under(epoch), Commit: commit,
			Costs: []quantity.Units{1}, Buckets: []algorithms.LimitTarget{{Always: commit, MostOwed: usual,
				Target: algorithms.Target{Key: BucketKey(Whole, on.id), Terms: on.terms}}}}})[0])
		return d.Buckets[0].Cell, admitted(d) == 1
	}
}

// settles settles a unit that was charged not long ago, which a log looks for, by what was used of it.
func settles(used quantity.Units) func(*stage, bucket, quantity.Units) (quantity.Cell, bool) {
	return func(st *stage, on bucket, _ quantity.Units) (quantity.Cell, bool) { return st.settle(on, used) }
}

func (st *stage) settle(on bucket, used quantity.Units) (quantity.Cell, bool) {
	now := quantity.StoreTime(time.Now().UnixMicro())
	cell := quantity.Cell(int64(now) / on.terms.Cell)
	st.named++
	r, err := st.Settle(context.Background(), algorithms.Settle{Fence: under(epoch),
		Receipt: SettleKey(Whole, strconv.Itoa(st.named)), Once: OnceKey(Whole, "none"),
		At: now, Cost: 1, Used: used,
		Charges: []algorithms.Charge{{Target: algorithms.Target{Key: BucketKey(Whole, on.id),
			Terms: on.terms}, Cell: cell, Until: now.Add(10_000_000), MostOwed: usual}}})
	if err != nil {
		st.b.Fatal(err)
	}
	return cell, r.Status == algorithms.StatusOK
}

// idle is a script that does nothing.
var idle = func() algorithms.Script {
	sum := sha1.Sum([]byte("return 1"))
	return algorithms.Script{Name: "idle", Source: "return 1", SHA: hex.EncodeToString(sum[:])}
}()

// nothing is a decision's call of a script that does nothing.
type nothing struct{ algorithms.Items }

func (nothing) Script() algorithms.Script { return idle }

func (nothing) Parse(any) (algorithms.ItemsDecided, error) {
	return algorithms.ItemsDecided{}, nil
}

// bare runs a script that does nothing, with the arguments of a decision.
func bare(st *stage, on bucket, _ quantity.Units) (quantity.Cell, bool) {
	var c nothing
	c.Add(algorithms.Decide{Fence: under(epoch), Commit: true, Costs: []quantity.Units{1},
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: BucketKey(Whole, on.id),
			Terms: on.terms}}}})
	must(st.b, run[nothing, algorithms.ItemsDecided](context.Background(), st.Store,
		[]nothing{c})[0])
	return quantity.Cell(time.Now().UnixMicro() / on.terms.Cell), true
}
