package oracle

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func TestPools(t *testing.T) {
	type offer struct {
		at, cost int64
		admits   bool
	}
	tests := []struct {
		name   string
		limit  Limit
		offers []offer
	}{
		{"counter: the cell before weighs in part", ofKind("sliding_window_counter", 10, 0),
			[]offer{
				{1 * second, 11, false}, {1 * second, 10, true}, {9 * second, 1, false},
				{10 * second, 1, false}, {11*second - 1, 1, false}, {11 * second, 1, true},
				{20 * second, 9, true}, {30 * second, 1, true},
			}},
		{"counter: a denial leaves nothing behind", ofKind("sliding_window_counter", 10, 0),
			[]offer{
				{1 * second, 6, true}, {2 * second, 5, false}, {3 * second, 4, true},
			}},
		{"counter: a late offer counts in the latest cell", ofKind("sliding_window_counter", 10, 0),
			[]offer{
				{10 * second, 5, true}, {9 * second, 5, true}, {11 * second, 1, false},
				{20 * second, 1, false},
			}},
		{"log: an admission leaves a window later", ofKind("sliding_window_log", 10, 0), []offer{
			{1 * second, 4, true}, {2 * second, 7, false}, {2 * second, 6, true},
			{11*second - 1, 1, false}, {11 * second, 5, false}, {11 * second, 4, true},
			{12 * second, 6, true},
		}},
		{"log: a late offer leaves a window after the latest", ofKind("sliding_window_log", 10, 0),
			[]offer{
				{10 * second, 1, true}, {1 * second, 9, true}, {11 * second, 1, false},
				{20*second - 1, 1, false}, {20 * second, 10, true},
			}},
		{"bucket: full at first, and refilled", ofKind("token_bucket", 10, 3), []offer{
			{0, 4, false}, {0, 3, true}, {1*second - 1, 1, false}, {1 * second, 1, true},
			{60 * second, 4, false}, {60 * second, 3, true},
		}},
		{"bucket: a late offer finds the latest level", ofKind("token_bucket", 10, 3), []offer{
			{5 * second, 3, true}, {1 * second, 1, false}, {6 * second, 1, true},
		}},
		{"queue: drained", ofKind("leaky_bucket", 10, 3), []offer{
			{0, 3, true}, {1*second - 1, 1, false}, {1 * second, 1, true}, {3 * second, 2, true},
			{3 * second, 1, false},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := algorithms[tt.limit.Algorithm].newPool(tt.limit)
			for i, o := range tt.offers {
				at := us(o.at).UnixMicro()
				copied := p.clone()
				if got := copied.offer(0, at, o.cost); got != o.admits {
					t.Fatalf("a clone's offer %d, %+v: %v", i, o, got)
				}
				copied.offer(0, at+1, 1) // must have no effect below
				if got := p.offer(0, at, o.cost); got != o.admits {
					t.Fatalf("offer %d, %+v: %v", i, o, got)
				}
			}
		})
	}
}

// Where the pool's state carries over, denials are netted over the time for which it does.
func TestFalseDenialsOfStateThatCarriesOver(t *testing.T) {
	type lost map[string]int64 // "phase/region": false denials
	type answer struct {
		region   string
		at, cost int64
		outcome  Outcome
	}
	log, counter := ofKind("sliding_window_log", 10, 0), ofKind("sliding_window_counter", 10, 0)
	// The two are drained in 20 s.
	bucket, queue := ofKind("token_bucket", 10, 20), ofKind("leaky_bucket", 10, 20)
	tests := []struct {
		name    string
		limit   Limit
		history []answer
		want    lost
	}{
		{"log: made good in the same window, cells later", log,
			[]answer{{"eu", 1 * second, 10, Denied}, {"us", 9 * second, 10, Admitted}}, lost{}},
		{"log: made good across a window's end", log, []answer{{"eu", 9 * second, 10, Denied},
			{"us", 11 * second, 10, Admitted}}, lost{}},
		{"log: made good in part", log, []answer{{"eu", 9 * second, 10, Denied},
			{"us", 11 * second, 4, Admitted}}, lost{"two/eu": 6}},
		{"log: the room was there for both", log, []answer{{"eu", 9 * second, 10, Denied},
			{"us", 19 * second, 10, Admitted}}, lost{"two/eu": 10}},
		{
			"log: a delay of ours that goes on is no loss", log,
			[]answer{
				{"eu", 9 * second, 10, Denied}, {"eu", 11 * second, 10, Admitted},
				{"eu", 19 * second, 10, Denied}, {"eu", 21 * second, 10, Admitted},
				{"eu", 29 * second, 10, Denied}, {"eu", 31 * second, 10, Admitted},
			},
			lost{},
		},
		{
			"log: what was made good does not hide a later denial", log,
			[]answer{{"eu", 9 * second, 10, Denied}, {"eu", 11 * second, 10, Admitted},
				{"us", 19 * second, 10, Denied}},
			lost{"two/us": 10},
		},
		{
			"log: made good across a window's end, in the phase that made it good", log,
			[]answer{{"eu", 1 * second, 4, Denied}, {"us", 7 * second, 6, Denied},
				{"us", 10 * second, 5, Admitted}},
			lost{"one/eu": 4, "two/us": 1},
		},
		{"counter: made good in the next cell", counter, []answer{{"eu", 1 * second, 10, Denied},
			{"us", 12 * second, 8, Admitted}}, lost{"one/eu": 2}},
		{"counter: the cell before weighs on", counter, []answer{{"eu", 1 * second, 10, Admitted},
			{"us", 15 * second, 6, Denied}, {"us", 15 * second, 5, Denied}}, lost{"two/us": 5}},
		{"bucket: made good while it fills", bucket, []answer{{"eu", 1 * second, 20, Denied},
			{"us", 15 * second, 20, Admitted}}, lost{}},
		{"bucket: made good across a period's end", bucket,
			[]answer{{"eu", 15 * second, 20, Denied}, {"us", 25 * second, 20, Admitted}}, lost{}},
		{"bucket: it had filled again", bucket, []answer{{"eu", 1 * second, 20, Denied},
			{"us", 21 * second, 20, Admitted}}, lost{"one/eu": 20}},
		{"queue: made good while it drains", queue, []answer{{"eu", 1 * second, 20, Denied},
			{"us", 15 * second, 15, Admitted}}, lost{"one/eu": 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var n answers
			j := New(tt.limit)
			begin(t, j, "one", sec(-60))
			begin(t, j, "two", sec(5))
			for _, a := range tt.history {
				j.Record(n.under(tt.limit, a.region, a.at, a.cost, a.outcome))
			}
			got := lost{}
			for _, p := range j.Summary() {
				for _, r := range p.Regions {
					if r.FalseDenials != 0 {
						got[p.Name+"/"+r.Region] = r.FalseDenials
					}
				}
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestMakingGood(t *testing.T) {
	tests := []struct {
		name    string
		before  map[int64]int64 // lost units, by period
		cost    int64           // of an admission in period 5 that the pool did not make
		carried map[int64]int64 // what remains lost if the state carries over
		cells   map[int64]int64 // and if it does not
	}{
		{"its own period first", map[int64]int64{4: 3, 5: 3}, 2, map[int64]int64{4: 3, 5: 1},
			map[int64]int64{4: 3, 5: 1}},
		{"then the one before", map[int64]int64{4: 3, 5: 3}, 5, map[int64]int64{4: 1, 5: 0},
			map[int64]int64{4: 3, 5: 0}},
		{"and no more than that", map[int64]int64{3: 9, 4: 3, 6: 9}, 5,
			map[int64]int64{3: 9, 4: 0, 5: 0, 6: 9}, map[int64]int64{3: 9, 4: 3, 5: 0, 6: 9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for memory, want := range map[int64]map[int64]int64{0: tt.cells, 1: tt.carried} {
				r := newReplay(nil, memory)
				for period, lost := range tt.before {
					r.book(period, slot{0, "eu"}, lost)
				}
				r.makeGood(offered{at: 5, cell: 5, cost: tt.cost, slot: slot{1, "us"}})
				got := map[int64]int64{}
				for period, n := range r.nets {
					got[period] = n.lost()
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("memory %d: %v, want %v", memory, got, want)
				}
			}
		})
	}
}

func TestDrainTime(t *testing.T) {
	tests := []struct {
		limit, burst int64
		window       time.Duration
		want         int64
	}{
		{10, 20, 10 * time.Second, 20 * second},
		{10, 10, 10 * time.Second, 10 * second},
		{10, 1, 10 * time.Second, 10 * second},
		{3, 10, 10 * time.Second, 33_333_334},
		{1, MaxCost, math.MaxInt64 / 1000 * 1000, dusk},
	}
	for _, tt := range tests {
		l := Limit{Limit: tt.limit, Burst: tt.burst, Window: tt.window, Algorithm: "token_bucket"}
		if got := drainTime(l); got != tt.want {
			t.Errorf("%d in %v with a burst of %d: %d µs, want %d", tt.limit, tt.window, tt.burst,
				got, tt.want)
		}
	}
}
