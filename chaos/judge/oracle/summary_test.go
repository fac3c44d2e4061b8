package oracle

import (
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestFalseDenialsAreAttributed(t *testing.T) {
	var n answers
	type lost map[string]int64 // "phase/region": false denials
	tests := []struct {
		name    string
		history []Answer
		want    lost
	}{
		{"nothing denied", []Answer{n.at("eu", sec(1), 10, Admitted)}, lost{}},
		{"denied while the limit had room", []Answer{n.at("eu", sec(1), 4, Admitted),
			n.at("eu", sec(2), 3, Denied)}, lost{"one/eu": 3}},
		{"denied because the limit was used up", []Answer{n.at("eu", sec(1), 10, Admitted),
			n.at("us", sec(2), 3, Denied)}, lost{}},
		{"a cost that no limiter can admit", []Answer{n.at("eu", sec(1), 11, Denied)}, lost{}},
		{
			"denied in one region, made good in another",
			[]Answer{n.at("eu", sec(1), 6, Denied), n.at("us", sec(2), 4, Admitted),
				n.at("us", sec(3), 5, Admitted)},
			lost{"one/eu": 1},
		},
		{
			"made good in the next phase of the cell, and more",
			[]Answer{
				n.at("eu", sec(10), 6, Denied), n.at("us", sec(20), 4, Admitted),
				n.at("eu", sec(40), 5, Admitted), n.at("us", sec(41), 1, Denied),
			},
			lost{"one/eu": 1},
		},
		{
			"each phase has its own in a cell that straddles them",
			[]Answer{n.at("eu", sec(10), 2, Denied), n.at("us", sec(40), 3, Denied),
				n.at("ap", sec(41), 1, Denied)},
			lost{"one/eu": 2, "two/us": 3, "two/ap": 1},
		},
		{
			"what is made good is shared in proportion",
			[]Answer{
				n.at("ap", sec(10), 2, Denied), n.at("eu", sec(11), 2, Denied), n.at("us", sec(12),
					6, Denied), n.at("sa", sec(13), 5, Admitted),
			},
			lost{"one/ap": 1, "one/eu": 1, "one/us": 3},
		},
		{
			"never below zero, and no credit for another cell",
			[]Answer{
				n.at("eu", sec(1), 9, Denied), n.at("us", sec(2), 5, Admitted),
				n.at("us", sec(3), 5, Admitted),
				n.at("eu", sec(61), 1, Denied),
			},
			lost{"two/eu": 1},
		},
		{
			"an unknown outcome takes room in the pool and is no false denial",
			[]Answer{n.at("eu", sec(1), 8, Unknown), n.at("us", sec(2), 3, Denied),
				n.at("us", sec(3), 2, Denied)},
			lost{"one/us": 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := New(fixed(10))
			begin(t, j, "one", sec(0))
			begin(t, j, "two", sec(30))
			for _, a := range tt.history {
				j.Record(a)
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

// begin declares a phase and fails the test if it is refused.
func begin(t suite.T, j *Judge, name string, from time.Time) {
	suite.Must(t, j.Phase(name, from))
}

func TestSummaryByPhase(t *testing.T) {
	var n answers
	j := New(fixed(10))
	j.Record(n.at("eu", sec(5), 2, Admitted)) // before any phase
	begin(t, j, "calm", sec(10))
	begin(t, j, "empty", sec(20))
	begin(t, j, "cut", sec(30))

	calm := n.at("us", sec(29.9), 4, Admitted)
	calm.Seen, calm.Share, calm.Entitlement = sec(31), 7, 5 // sent in calm, seen in cut
	j.Record(calm)
	earlier := n.at("us", sec(29), 1, Denied)
	earlier.Share = 3 // recorded later, but not the latest
	j.Record(earlier)
	cut := n.at("us", sec(30), 1, Denied)
	cut.Degraded = true
	j.Record(cut)
	j.Record(n.at("ap", sec(33), 2, Unknown))

	want := []Phase{
		{Name: "", From: sec(5), To: sec(10),
			Regions: []Row{{Region: "eu", Answers: 1, Offered: 2, Admitted: 2, PooledAdmits: 2}}},
		{Name: "calm", From: sec(10), To: sec(20)},
		{Name: "empty", From: sec(20), To: sec(30), Regions: []Row{
			{Region: "us", Answers: 2, Offered: 5, Admitted: 4, Denied: 1, PooledAdmits: 5,
				FalseDenials: 1, Entitlement: 5, Share: 7},
		}},
		{Name: "cut", From: sec(30), To: sec(33), Regions: []Row{
			{Region: "ap", Answers: 1, Offered: 2, Unknown: 2, PooledAdmits: 2},
			{Region: "us", Answers: 1, Offered: 1, Denied: 1, PooledAdmits: 1, FalseDenials: 1,
				Degraded: 1},
		}},
	}
	for i := range want {
		for _, r := range want[i].Regions {
			want[i].Total = want[i].Total.plus(r)
		}
	}
	got := j.Summary()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if rate := got[2].Total.FalseDenialRate(); rate != 0.2 {
		t.Errorf("false denial rate %v, want 1 of 5", rate)
	}
	if rate := (Row{}).FalseDenialRate(); rate != 0 {
		t.Errorf("rate of nothing is %v", rate)
	}
	if err := j.Phase("late", sec(29)); err == nil || !strings.Contains(err.Error(),
		`begins 1s before phase "cut"`) {
		t.Errorf("phases out of order: %v", err)
	}
}

// dumbSummary keeps everything, sorts it, and follows the rules of the package comment literally,
// with fractions where production rounds.
func dumbSummary(limit Limit, history []Answer, boundaries []time.Time) (pooled,
	lost map[slot]int64) {
	pooled, lost = map[slot]int64{}, map[slot]int64{}
	phase := func(sent time.Time) int {
		p := 0
		for i, b := range boundaries {
			if !sent.Before(b) {
				p = i + 1
			}
		}
		return p
	}
	when := func(a Answer) int64 {
		if a.Outcome == Unknown {
			return a.Sent.UnixMicro()
		}
		return a.At
	}
	sorted := slices.Clone(history)
	slices.SortFunc(sorted, func(a, b Answer) int {
		key := func(a Answer) offered {
			return offered{at: when(a), cost: a.Cost, outcome: a.Outcome, node: a.Node,
				sequence: a.Sequence, slot: slot{phase(a.Sent), a.Region}}
		}
		return compareOffered(key(a), key(b))
	})
	for _, bucket := range []string{"a", "b"} {
		for cell := epoch.Unix()/60 - 1; cell <= epoch.Unix()/60+4; cell++ {
			var used int64
			nets := map[slot]int64{}
			for _, a := range sorted {
				if a.Bucket != bucket || when(a)/60_000_000 != cell {
					continue
				}
				s := slot{phase(a.Sent), a.Region}
				admits := used+a.Cost <= limit.Limit
				if admits {
					used += a.Cost
					pooled[s] += a.Cost
				}
				if admits && a.Outcome == Denied {
					nets[s] += a.Cost
				}
				if !admits && a.Outcome == Admitted {
					nets[s] -= a.Cost
				}
			}
			dumbAttribute(nets, lost)
		}
	}
	return pooled, lost
}

// dumbAttribute adds one cell's false denials to lost.
func dumbAttribute(nets, lost map[slot]int64) {
	regions := []string{"ap", "eu", "us"}
	var total int64
	byPhase := make([]int64, 4)
	for s, n := range nets {
		total += n
		byPhase[s.phase] += n
	}
	for p, part := range dumbApportion(max(0, total), byPhase) {
		byRegion := make([]int64, len(regions))
		for i, r := range regions {
			byRegion[i] = nets[slot{p, r}]
		}
		for i, n := range dumbApportion(part, byRegion) {
			lost[slot{p, regions[i]}] += n
		}
	}
}

// dumbApportion gives whole units to the part that is furthest below its exact value.
func dumbApportion(total int64, weights []int64) []int64 {
	parts, sum := make([]int64, len(weights)), int64(0)
	for _, w := range weights {
		sum += max(0, w)
	}
	if sum == 0 {
		return parts
	}
	for range total {
		poorest, most := -1, new(big.Rat)
		for i, w := range weights {
			missing := new(big.Rat).Sub(big.NewRat(max(0, w)*total, sum), big.NewRat(parts[i], 1))
			if missing.Cmp(most) > 0 { // of equal ones the first wins
				poorest, most = i, missing
			}
		}
		parts[poorest]++
	}
	return parts
}

func TestSummaryAgainstTwin(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		limit := fixed(rapid.Int64Range(1, 20).Draw(t, "limit"))
		limit.Settle = time.Hour // drawn in any order
		history := drawHistory(t)
		boundaries := []time.Time{sec(30), sec(90), sec(100)}
		j := New(limit)
		for i, b := range boundaries {
			begin(t, j, string(rune('A'+i)), b)
		}
		for i, a := range history {
			j.Record(a)
			if i%7 == 0 {
				j.Summary() // a query must change nothing
			}
		}
		compareWithTwin(t, j, limit, history, boundaries)
	})
}

// The same in the order of Seen, with a replay that runs a few seconds behind.
func TestSummaryWhileReplayRunsAgainstTwin(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		limit := fixed(rapid.Int64Range(1, 20).Draw(t, "limit"))
		limit.Settle = 2 * time.Second // the drawn requests take up to 1.6 s
		history := drawHistory(t)
		slices.SortStableFunc(history, func(a, b Answer) int { return a.Seen.Compare(b.Seen) })
		boundaries := []time.Time{sec(45)}
		j := New(limit)
		begin(t, j, "A", boundaries[0])
		for i, a := range history {
			j.Record(a)
			if i%5 == 0 {
				j.Summary()
			}
			for _, o := range j.buckets[a.Bucket].replay.waiting {
				if o.at <= a.Seen.Add(-limit.Settle).UnixMicro() {
					t.Fatalf("an answer of %d µs is still kept at %v", o.at, a.Seen)
				}
			}
		}
		if v := j.Verdict(); v.Late != 0 {
			t.Fatalf("%d answers came too late", v.Late)
		}
		compareWithTwin(t, j, limit, history, boundaries)
	})
}

func compareWithTwin(t *rapid.T, j *Judge, limit Limit, history []Answer, boundaries []time.Time) {
	pooled, lost := dumbSummary(limit, history, boundaries)
	var offered, byOutcome, wantOffered int64
	for _, a := range history {
		wantOffered += a.Cost
	}
	for _, p := range j.Summary() {
		phase := 0
		if p.Name != "" {
			phase = int(p.Name[0]-'A') + 1
		}
		for _, r := range p.Regions {
			s := slot{phase, r.Region}
			if r.PooledAdmits != pooled[s] || r.FalseDenials != lost[s] {
				t.Fatalf("phase %q: %+v, twin: pool admits %d, lost %d", p.Name, r, pooled[s],
					lost[s])
			}
			delete(pooled, s)
			delete(lost, s)
		}
		offered += p.Total.Offered
		byOutcome += p.Total.Admitted + p.Total.Denied + p.Total.Unknown
	}
	for s, n := range pooled {
		if n+lost[s] != 0 {
			t.Fatalf("no row for %+v, twin: pool admits %d, lost %d", s, n, lost[s])
		}
	}
	if offered != wantOffered || byOutcome != wantOffered {
		t.Fatalf("offered %d, by outcome %d, want %d", offered, byOutcome, wantOffered)
	}
}

func TestLateAnswersAreCountedAndStillJudged(t *testing.T) {
	var n answers
	j := New(fixed(10))
	j.Record(n.at("eu", sec(1), 6, Admitted))
	j.Record(n.at("eu", sec(30), 1, Denied)) // the replay has passed second 1
	late := n.at("us", sec(0.5), 6, Admitted)
	j.Record(late)
	v := j.Verdict()
	if v.Late != 1 || v.MaxAdmitted != 12 || !v.Proven() {
		t.Errorf("verdict %+v", v)
	}
	if got := j.Summary()[0].Total.PooledAdmits; got != 7 {
		t.Errorf("pool admits %d, want the 6 of eu and the 1 that fits", got)
	}
}

// A node that claims a time in the far future must not fill the judge's memory.
func TestAnswersFromTheFutureAreNotKept(t *testing.T) {
	var n answers
	j := New(fixed(10))
	for i := range 100 {
		a := n.at("eu", sec(float64(i)), 1, Denied)
		a.At += int64(time.Hour / time.Microsecond)
		j.Record(a)
	}
	if kept := len(j.buckets["orders/42"].replay.waiting); kept > 11 {
		t.Errorf("%d answers kept, want those of the last %v", kept, DefaultSettle)
	}
}

func TestApportion(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, MaxCost), 1, 6).Draw(t, "weights")
		var sum int64
		for _, w := range weights {
			sum += w
		}
		total := rapid.Int64Range(0, sum).Draw(t, "total")
		var given int64
		for i, part := range apportion(total, weights) {
			if part < 0 || part > weights[i] {
				t.Fatalf("part %d of weight %d", part, weights[i])
			}
			given += part
		}
		if given != total {
			t.Fatalf("%d given of %d", given, total)
		}
	})
}
