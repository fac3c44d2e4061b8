package tally

import (
	"fmt"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

func hashOf(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}

// TestASketchFindsTheHottest compares a sketch with a count of everything.
func TestASketchFindsTheHottest(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		var s Sketch
		now := time.UnixMilli(1)
		s.Turn(now)
		had, found := map[string]Units{}, map[string]bool{}
		total := [shards]int64{}
		for range rapid.IntRange(1, 3000).Draw(t, "adds") {
			few := rapid.SampledFrom([]int{3, 2000}).Draw(t, "buckets")
			id := fmt.Sprint(rapid.IntRange(0, few-1).Draw(t, "bucket"))
			u := Units{quantity.Units(rapid.IntRange(0, 5).Draw(t, "admitted")),
				quantity.Units(rapid.IntRange(0, 5).Draw(t, "denied"))}
			s.Add(id, hashOf(id), u)
			sum := had[id]
			had[id] = Units{sum.Admitted + u.Admitted, sum.Denied + u.Denied}
			total[hashOf(id)%shards] += int64(u.Admitted + u.Denied)
		}
		for _, h := range s.Hottest(Tracked) {
			found[h.ID] = true
			truly := had[h.ID]
			if h.Units.Admitted > truly.Admitted || h.Units.Denied > truly.Denied ||
				h.total()+h.Missed < int64(truly.Admitted+truly.Denied) {
				t.Fatalf("bucket %s is said to have had %+v, up to %d more, and had %+v", h.ID,
					h.Units, h.Missed, truly)
			}
		}
		for id, u := range had {
			n := int64(u.Admitted + u.Denied)
			if !found[id] && n*perShard > total[hashOf(id)%shards] {
				t.Fatalf("bucket %s has %d of the %d units of its shard, and is not found", id, n,
					total[hashOf(id)%shards])
			}
		}
		if len(found) > Tracked {
			t.Fatalf("%d buckets, at most %d", len(found), Tracked)
		}
	})
}

// TestPeriodsEnd: a report covers the present period and the one before.
func TestPeriodsEnd(t *testing.T) {
	var s Sketch
	now := time.UnixMilli(1_000_000)
	s.Turn(now)
	s.Add("a", hashOf("a"), Units{Admitted: 3})
	s.Turn(now.Add(Period - 1))
	s.Add("a", hashOf("a"), Units{Admitted: 4})
	s.Turn(now.Add(Period))
	s.Add("a", hashOf("a"), Units{Denied: 5})
	if got := s.Hottest(1); len(got) != 1 || got[0].Units != (Units{7, 5}) {
		t.Errorf("two periods: %+v", got)
	}
	if !s.Since().Equal(now) {
		t.Errorf("since %s", s.Since())
	}
	s.Turn(now.Add(2 * Period))
	if got := s.Hottest(1); len(got) != 1 || got[0].Units != (Units{0, 5}) {
		t.Errorf("the first is over: %+v", got)
	}
	s.Turn(now.Add(3 * Period))
	if got := s.Hottest(1); len(got) != 0 {
		t.Errorf("both are over: %+v", got)
	}
}

// TestBusiestHasBothEnds: a bucket with many denials is found beside many with more units.
func TestBusiestHasBothEnds(t *testing.T) {
	all := []Hot{{ID: "a", Units: Units{Admitted: 9}}, {ID: "b", Units: Units{Admitted: 8}},
		{ID: "c", Units: Units{Denied: 2}}, {ID: "d", Units: Units{Admitted: 3, Denied: 1}}}
	var got []string
	for _, h := range Busiest(all, 2) {
		got = append(got, h.ID)
	}
	if want := "[a b d c]"; fmt.Sprint(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCountsLoseNothing: what is counted while counts are taken comes with the next.
func TestCountsLoseNothing(t *testing.T) {
	var c Count
	var sum Units
	var counting sync.WaitGroup
	at := time.UnixMilli(1_700_000_000_123)
	for range 4 {
		counting.Go(func() {
			for range 1000 {
				c.Admit(2, Outcome{At: at, Reason: 1})
				c.Deny(3, Outcome{At: at, Reason: 31, FromMemory: true})
			}
		})
	}
	done := make(chan struct{})
	go func() { counting.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		u := c.Take()
		sum.Admitted, sum.Denied = sum.Admitted+u.Admitted, sum.Denied+u.Denied
	}
	if sum != (Units{8000, 12000}) {
		t.Errorf("counted %+v", sum)
	}
	last, known := c.Last()
	reason, memory := uint8(31), true
	if last.Admitted {
		reason, memory = 1, false
	}
	if !known || !last.At.Equal(at) || last.Reason != reason || last.FromMemory != memory {
		t.Errorf("last %+v, %v", last, known)
	}
	if _, known := new(Count).Last(); known {
		t.Error("a count of nothing has a last outcome")
	}
}

func BenchmarkCount(b *testing.B) {
	var c Count
	at := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		c.Admit(1, Outcome{At: at, Reason: 3})
	}
}

// BenchmarkSketchWorst counts buckets that are never counted already.
func BenchmarkSketchWorst(b *testing.B) {
	var s Sketch
	ids := make([]string, 1<<14)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := ids[i%len(ids)]
		s.Add(id, hashOf(id), Units{Admitted: 1})
	}
}
