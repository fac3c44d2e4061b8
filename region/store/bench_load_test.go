package store

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// load is a state that a bucket is brought to, and a call that is made again and again on copies of it.
type load struct {
	only
	name  string
	limit int64
	calls int64                // on one copy: few enough that all end alike
	units int64                // decided by one call, by which its time is divided
	bring func(*stage, bucket) // nil: each call finds no bucket
	call  func(st *stage, on bucket, n int64) (cell int64, well bool)
}

const (
	usual = 1000 // units in a minute
	large = 20 * usual
)

var logOnly = only{algorithms.SlidingWindowLog}

// loads are what is measured of the scripts. The n of a call begins with 1.
var loads = []load{
	{name: "bare EVALSHA", only: only{algorithms.FixedWindow}, limit: usual, calls: 200, units: 1, bring: used(1), call: bare},
	{name: "first", limit: usual, calls: 200, units: 1, call: admits(1)},
	{name: "admitted", limit: usual, calls: 200, units: 1, bring: used(1), call: admits(1)},
	{name: "denied", limit: usual, calls: 200, units: 1, bring: used(usual), call: denies(10)},
	{name: "admitted, rows of 2 cells", limit: usual, calls: 200, units: 1, bring: rows(false), call: admits(1)},
	{name: "admitted, all rows", only: sliding, limit: usual, calls: 200, units: 1, bring: rows(true), call: admits(1)},
	{name: "each of 100", limit: usual, calls: 9, units: 100, bring: used(1), call: admits(100)},
	{name: "admitted after 1000", only: logOnly, limit: large, calls: 200, units: 1, bring: used(usual), call: admits(1)},
	{name: "admitted after 10000", only: logOnly, limit: large, calls: 200, units: 1, bring: used(large / 2), call: admits(1)},
	{name: "denied 1000 of 1000", only: logOnly, limit: usual, calls: 20, units: 1, bring: used(usual), call: denies(usual)},
	{name: "denied 10000 of 10000", only: logOnly, limit: large / 2, calls: 5, units: 1, bring: used(large / 2), call: denies(large / 2)},
	{name: "lend", limit: usual, calls: 200, units: 1, bring: moved(lends), call: lends},
	{name: "credit", limit: usual, calls: 200, units: 1, bring: moved(credits), call: credits},
}

var sliding = only{algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog}

// used brings a bucket to where so many units were admitted one by one.
func used(units int) func(*stage, bucket) {
	return func(st *stage, on bucket) { st.singly(on, units) }
}

// rows brings a bucket to where it has rows of two peers.
func rows(past bool) func(*stage, bucket) {
	return func(st *stage, on bucket) {
		st.singly(on, 1)
		st.layRows(on, past)
	}
}

// moved brings a bucket to where rights were moved once.
func moved(call func(*stage, bucket, int64) (int64, bool)) func(*stage, bucket) {
	return func(st *stage, on bucket) { call(st, on, 1) }
}

func admits(requests int) func(*stage, bucket, int64) (int64, bool) {
	costs := make([]int64, requests)
	for i := range costs {
		costs[i] = 1
	}
	return func(st *stage, on bucket, _ int64) (int64, bool) {
		d := st.decide(on, costs...)
		return d.Buckets[0].Cell, admitted(d) == int64(requests)
	}
}

func denies(cost int64) func(*stage, bucket, int64) (int64, bool) {
	return func(st *stage, on bucket, _ int64) (int64, bool) {
		d := st.decide(on, cost)
		return d.Buckets[0].Cell, admitted(d) == 0 && d.Answers[0].Verdicts[0].Retry > 0
	}
}

// lends and credits move one unit more than the call before.
func lends(st *stage, on bucket, n int64) (int64, bool) {
	cell := time.Now().UnixMicro() / on.terms.Cell
	g := lend(st.b, st.Store, algorithms.Lend{Guard: under(epoch), Key: BucketKey(on.id), Terms: on.terms, Peer: "us-east",
		Cell: cell, Lent: n, Cap: usual})
	return cell, g.Status == algorithms.StatusOK && g.Row.Lent == n
}

func credits(st *stage, on bucket, n int64) (int64, bool) {
	cell := time.Now().UnixMicro() / on.terms.Cell
	g := credit(st.b, st.Store, algorithms.Credit{Guard: under(epoch), Key: BucketKey(on.id), Terms: on.terms, Peer: "us-east",
		PeerGeneration: 1, Cell: cell, Lent: n, Most: usual})
	return cell, g.Status == algorithms.StatusOK && g.Row.Borrowed == n
}

// idle is a script that does nothing.
var idle = func() algorithms.Script {
	sum := sha1.Sum([]byte("return 1"))
	return algorithms.Script{Name: "idle", Source: "return 1", SHA: hex.EncodeToString(sum[:])}
}()

// nothing is a decision's call whose answer says nothing.
type nothing struct{ algorithms.Decide }

func (nothing) Parse(any) (struct{}, error) { return struct{}{}, nil }

// bare runs a script that does nothing, with the arguments of a decision.
func bare(st *stage, on bucket, _ int64) (int64, bool) {
	c := nothing{algorithms.Decide{Guard: st.guard(under(epoch)), Commit: true, Costs: []int64{1},
		Buckets: []algorithms.Target{{Key: BucketKey(on.id), Terms: on.terms}}}}
	must(st.b, run(context.Background(), st.Store, []item[struct{}]{prepare(idle, c)})[0])
	return time.Now().UnixMicro() / on.terms.Cell, true
}

// figures are what one call of a load took in a slice of them, in microseconds.
type figures struct{ wall, script float64 }

// subject is a load with the bucket that its calls are made on copies of.
type subject struct {
	load
	kind  algorithms.Kind
	model *bucket // nil: to be made
}

// slice makes the calls of a load on one copy of its model. Where they do not end as they should, because a cell has
// ended meanwhile or a bucket has refilled, it begins again with a new model.
func (s *subject) slice(st *stage) figures {
	for range 100 {
		if s.model == nil && s.bring != nil {
			model := st.bucket(s.kind, s.limit)
			s.bring(st, model)
			s.model = &model
		}
		if f, well := s.try(st); well {
			return f
		}
		s.model = nil
	}
	st.b.Fatalf("%s, %s: in a hundred tries not one in which all calls ended as they should", s.name, s.kind)
	return figures{}
}

func (s *subject) try(st *stage) (figures, bool) {
	var on bucket
	if s.model != nil {
		on = st.copied(*s.model)
	}
	calls, micros := st.scripts()
	begun, cell := time.Now(), int64(-1)
	for n := range s.calls {
		if s.bring == nil {
			on = st.bucket(s.kind, s.limit)
		}
		in, well := s.call(st, on, n+2)
		if !well || cell >= 0 && in != cell && s.bring != nil {
			return figures{}, false
		}
		cell = in
	}
	wall := float64(time.Since(begun).Nanoseconds()) / 1000
	callsAfter, microsAfter := st.scripts()
	if callsAfter-calls != s.calls {
		return figures{}, false // the server had to be sent the script
	}
	units := float64(s.calls * s.units)
	return figures{wall / units, float64(microsAfter-micros) / units}, true
}

// time measures a load on one algorithm, in turns with a fixed window.
func (st *stage) time(b *testing.B, l load, kind algorithms.Kind) string {
	subject, reference := &subject{load: l, kind: kind}, &subject{load: l, kind: algorithms.FixedWindow}
	subject.slice(st)
	reference.slice(st)
	var wall, script, ratio []float64
	for b.Loop() {
		f, r := subject.slice(st), reference.slice(st)
		wall, script, ratio = append(wall, f.wall), append(script, f.script), append(ratio, f.script/r.script)
	}
	b.ReportMetric(1000*median(wall), "ns/op")
	b.ReportMetric(median(script), "script-us/op")
	b.ReportMetric(median(ratio), "x-fixed-window")
	return fmt.Sprintf("%.1f (%.2f)", median(script), median(ratio))
}
