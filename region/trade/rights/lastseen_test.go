package rights

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

const second = 1_000_000 // microseconds

// lasting is a bucket of ten minutes of which region "us" has 1,000 units: cell 0 begins at time 0.
func lasting(id string) *exchange.Bucket {
	return &exchange.Bucket{ID: id, Kind: algorithms.FixedWindow, Window: 600 * second,
		Cell: 600 * second, Tick: 1,
		Entitlements: map[string]quantity.Units{"us": 1000}, Recovered: true}
}

// shown is a state of a cell, of a bucket known to be there until its end.
func shown(cell quantity.Cell, used quantity.Units) algorithms.State {
	return algorithms.State{Cell: cell, Used: used,
		ExistsUntil: quantity.StoreTime((cell + 1) * 600 * second)}
}

// atTime is a store whose time stands still.
func atTime(now quantity.StoreTime) func() quantity.StoreTime {
	return func() quantity.StoreTime { return now }
}

// used notes that a bucket is used, and what its store then showed.
func (s *lastSeen) used(b *exchange.Bucket, state algorithms.State, at quantity.StoreTime) {
	s.begin(b)
	s.note(b, state, at)
}

func TestSeenKeepsTheLatest(t *testing.T) {
	s, b := newLastSeen("us", Memory{}, atTime(1), atTime(1)), lasting("a")
	if s.use("a") != (algorithms.Use{}) || s.begin(b) != 0 {
		t.Error("a bucket never seen is known")
	}
	for _, step := range []struct {
		state     algorithms.State
		at        quantity.StoreTime
		use       algorithms.Use
		known     quantity.StoreTime
		whichever string
	}{
		{shown(0, 10), 5, algorithms.Use{Units: 10, At: 5}, 600 * second, "the first"},
		{shown(0, 9), 4, algorithms.Use{Units: 10, At: 5}, 600 * second,
			"an answer that comes late"},
		{shown(0, 3), 6, algorithms.Use{Units: 3, At: 6}, 600 * second, "less, after a refund"},
		{algorithms.State{Cell: 0, Used: 4}, 7, algorithms.Use{Units: 4, At: 7}, 600 * second,
			"an answer that cannot tell until when"},
		{algorithms.State{Cell: 0, Used: 900, Shut: 600 * second}, 8,
			algorithms.Use{Units: 4, At: 7}, 600 * second, "use that nobody told of"},
		{shown(1, 0), 600 * second, algorithms.Use{Cell: 1, At: 600 * second}, 1200 * second,
			"the next cell"},
	} {
		s.note(b, step.state, step.at)
		if got := s.use("a"); got != step.use || s.begin(b) != step.known {
			t.Errorf("%s: use %+v, known until %d", step.whichever, got, s.begin(b))
		}
	}
	s.noteTenure(2, 600*second, true)
	if s.begin(b) != 0 || s.use("a") != (algorithms.Use{Cell: 1, At: 600 * second}) {
		t.Errorf("another generation: use %+v, known until %d", s.use("a"), s.begin(b))
	}
}

// TestSeenForgetsByTheStoresTime: a bucket is forgotten when nothing of it counts any more by the
// store's time, and not before.
func TestSeenForgetsByTheStoresTime(t *testing.T) {
	now := quantity.StoreTime(1)
	s := newLastSeen("us", Memory{}, atTime(1), func() quantity.StoreTime { return now })
	s.used(lasting("a"), shown(0, 1), 1)
	for _, step := range []struct {
		now           quantity.StoreTime
		buckets, uses int64
	}{{600*second - 1, 1, 1}, {600 * second, 1, 0}, {1800 * second, 0, 0}} {
		now = step.now
		s.forget()
		if buckets, uses, _ := s.counts(); int64(buckets) != step.buckets ||
			int64(uses) != step.uses {
			t.Errorf("at %d: %d buckets, %d uses", now/second, buckets, uses)
		}
	}
}

// TestUseIsLeftToTheJournal: uses beyond the bound are dropped once the journal has them, and never
// before. That the buckets were used is still remembered.
func TestUseIsLeftToTheJournal(t *testing.T) {
	s := newLastSeen("us", Memory{Uses: 640}, atTime(1), atTime(1))
	const many = 6400
	for i := range many {
		s.used(lasting(fmt.Sprint(i)), shown(0, quantity.Units(i+1)), 1)
	}
	if buckets, uses, unwritten := s.counts(); buckets != many || uses != many ||
		unwritten != many {
		t.Fatalf("%d buckets, %d uses, %d of them unwritten: nothing may be forgotten before it is written", buckets, uses, unwritten)
	}
	durable := map[string]quantity.Units{}
	write := func() {
		all, _ := s.checkpoints(1, false)
		for _, c := range all {
			durable[c.Bucket] = c.Used
		}
		s.written(all)
	}
	write()
	for round := range 40 {
		for i := range many / 4 {
			s.used(lasting(fmt.Sprint("more", round, "-", i)), shown(0, 1), 2)
		}
		write()
	}
	// The uses that came last have not rested yet.
	if _, uses, unwritten := s.counts(); uses > 640+many/2 || unwritten > many/4 {
		t.Errorf("%d uses remembered, %d of them unwritten; about 640 are to be", uses, unwritten)
	}
	for i := range many {
		id := fmt.Sprint(i)
		if got := max(s.use(id).Units, durable[id]); got != quantity.Units(i+1) ||
			!s.usedBefore(id, 1) {
			t.Fatalf("bucket %s: %d remembered, used %v", id, got, s.usedBefore(id, 1))
		}
	}
}

// TestWhoHasNoRoomVouchesForNothing: a node without room to remember a bucket it used must not say
// of any bucket that it did not use it.
func TestWhoHasNoRoomVouchesForNothing(t *testing.T) {
	now := quantity.StoreTime(100)
	s := newLastSeen("us", Memory{Buckets: seenParts}, func() quantity.StoreTime { return now },
		atTime(0))
	s.noteTenure(1, now, false)
	now = 200
	for i := range 10 * seenParts {
		s.used(lasting(fmt.Sprint(i)), shown(0, 1), quantity.StoreTime(now))
	}
	buckets, _, _ := s.counts()
	if buckets > seenParts || s.untracked.Load() != int64(10*seenParts-buckets) ||
		s.since.Load() != 200 {
		t.Errorf("%d buckets remembered of at most %d, %d untracked, all known since %d", buckets,
			seenParts, s.untracked.Load(), s.since.Load())
	}
}

// TestUsedBeforeAGeneration: a bucket that was first used under a generation of the store was not
// used before that generation.
func TestUsedBeforeAGeneration(t *testing.T) {
	s := newLastSeen("us", Memory{}, atTime(1), atTime(1))
	s.noteTenure(7, 1, false)
	s.begin(lasting("before"))
	s.noteTenure(8, 1, true)
	s.begin(lasting("before"))
	s.begin(lasting("since"))
	s.note(lasting("since"), shown(0, 0), 1)
	if !s.usedBefore("since", 8) {
		t.Error("a bucket that was there and is not any more counts as never used")
	}
	s.begin(lasting("asked"))
	if !s.usedBefore("before", 8) || s.usedBefore("asked", 8) || s.usedBefore("never", 8) {
		t.Error("used before, asked for since and never: ", s.usedBefore("before", 8),
			s.usedBefore("asked", 8), s.usedBefore("never", 8))
	}
}

// TestCheckpointsOfSeen: a use is written when it is first seen, when it moved by more than a
// hundredth of the entitlement, when it is of another cell, or when it did not move between two
// looks. It is not written again before it moves.
func TestCheckpointsOfSeen(t *testing.T) {
	s, b := newLastSeen("us", Memory{}, atTime(1), atTime(1)), lasting("a")
	short := lasting("short")
	short.Recovered = false
	now := quantity.StoreTime(5 * 600 * second)
	for _, step := range []struct {
		what string
		cell quantity.Cell
		used quantity.Units // -1: nothing is seen
		want quantity.Units // -1: nothing is written
	}{
		{"the first", 5, 1, 1},
		{"nothing since", 5, -1, -1},
		{"a hundredth", 5, 11, -1},
		{"more than that", 5, 12, 12},
		{"less", 5, 11, -1},
		{"rested", 5, -1, 11},
		{"seen again, the same", 5, 11, -1},
		{"more than a hundredth again", 5, 22, 22},
		{"far less, by a refund", 5, 1, 1},
		{"another cell", 6, 1, 1},
	} {
		now += second / 10
		if step.used >= 0 {
			s.used(b, shown(step.cell, step.used), now)
			s.used(short, shown(step.cell, step.used*100), now)
		}
		got, _ := s.checkpoints(7, false)
		s.written(got)
		switch {
		case step.want < 0:
			if len(got) > 0 {
				t.Errorf("%s: written %+v", step.what, got)
			}
		case len(got) != 1 || got[0].Bucket != "a" || got[0].Used != step.want ||
			got[0].Cell != step.cell || int64(got[0].At) > int64(now) ||
			int64(got[0].Until) != int64((step.cell+1)*600*second) || got[0].Generation != 7:
			t.Errorf("%s: written %+v, want %d", step.what, got, step.want)
		}
	}
}

// TestCheckpointsLagByTheRule: checkpoints are written once a second. They lack at most a hundredth
// of the entitlement and what was used since. After two seconds of rest they lack nothing, and nor
// does the last checkpoint.
func TestCheckpointsLagByTheRule(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		s, b := newLastSeen("us", Memory{}, atTime(1), atTime(1)), lasting("a")
		var used, written quantity.Units
		var now quantity.StoreTime
		write := func(last bool) {
			all, _ := s.checkpoints(1, last)
			for _, c := range all {
				written = c.Used
			}
			if rapid.IntRange(0, 4).Draw(r, "journal fails") > 0 || last {
				s.written(all)
			}
		}
		for range rapid.IntRange(1, 30).Draw(r, "seconds") {
			for range rapid.IntRange(0, 4).Draw(r, "decisions") {
				now += quantity.StoreTime(rapid.Int64Range(1, second/4).Draw(r, "pause"))
				used += quantity.Units(rapid.Int64Range(0, 15).Draw(r, "cost"))
				s.used(b, shown(0, used), now)
			}
			now = (now/second + 1) * second
			if write(false); used-written > 10 {
				r.Fatalf("used %d, written %d", used, written)
			}
		}
		if rapid.Bool().Draw(r, "last") {
			write(true)
		} else {
			write(false)
			write(false)
		}
		if written != used {
			r.Fatalf("at rest: used %d, written %d", used, written)
		}
	})
}

func TestSeenConcurrently(t *testing.T) {
	s := newLastSeen("us", Memory{Uses: 64}, atTime(1), atTime(1))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range quantity.Units(500) {
				id := fmt.Sprint(i % 50)
				s.used(lasting(id), shown(quantity.Cell(i/100), i), quantity.StoreTime(i*second))
				if u := s.use(id); u.Units > 500 {
					t.Errorf("use %+v", u)
				}
				switch worker {
				case 0:
					all, _ := s.checkpoints(1, false)
					s.written(all)
				case 1:
					s.forget()
				case 2:
					s.noteTenure(uint64(i), quantity.StoreTime(i), true)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkRemembered is the memory that a million buckets take of which a node notes that it used
// them, and half a million of which it keeps how much and the journal has that.
func BenchmarkRemembered(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for what, size := range map[string]struct {
		buckets   int
		recovered bool
	}{"buckets": {1_000_000, false}, "uses": {500_000, true}} {
		b.Run(what, func(b *testing.B) {
			for range b.N {
				before := heap()
				s := newLastSeen("us", Memory{}, atTime(1), atTime(1))
				for i := range size.buckets {
					bucket := lasting(fmt.Sprintf("1:4:long7:account12:%012d", i))
					bucket.Recovered = size.recovered
					s.used(bucket, shown(0, quantity.Units(i)), 1)
				}
				all, _ := s.checkpoints(1, true)
				s.written(all)
				b.ReportMetric(float64(heap()-before)/float64(size.buckets), "B/bucket")
				runtime.KeepAlive(s)
			}
		})
	}
}

// TestWhoIsGone: a node is gone once the store has not answered it for ten seconds. Who reads the store then
// has all of it, until it is answered again. That says nothing of the reader itself.
func TestWhoIsGone(t *testing.T) {
	var g gone
	at := func(seconds int64) quantity.StoreTime { return quantity.StoreTime(seconds * second) }
	lives := func(node string) bool { return node == "n1" || node == "n2" || node == "n3" }
	named := func(n1, n2, x quantity.StoreTime) {
		g.name(map[string]exchange.Answers{"n1": {Last: n1}, "n2": {Last: n2}, "x": {First: at(3), Last: x}}, 0)
	}
	known := func() (read string) {
		for _, c := range g.known("n1", 0) {
			if c.Until > 0 {
				read += fmt.Sprintf("%+v", c)
			}
		}
		return read
	}

	named(at(100), at(100), at(95))
	if g.toRead("n1", at(105), lives) || !g.toRead("n1", at(105)+1, lives) || g.toRead("n3", at(106), lives) {
		t.Error("x is gone after ten seconds, and the first two nodes read")
	}
	named(at(119), at(119), at(95))
	g.read("n1", at(7), at(120))
	if got := known(); got != fmt.Sprintf("{Node:x Since:%d Until:%d Rows:true Settled:0 First:%d Answered:%d Read:%d}", at(7), at(120), at(3), at(95), at(120)) {
		t.Errorf("read: %s", got)
	}
	if g.toRead("n1", at(130), lives) || g.readBy("n1") != 0 {
		t.Errorf("read again: %t, and n1 itself as of %d", g.toRead("n1", at(130), lives), g.readBy("n1"))
	}
	// A later loss does not make what was read any less.
	named(at(139), at(139), at(95))
	g.read("n1", at(130), at(140))
	if got := known(); got != fmt.Sprintf("{Node:x Since:%d Until:%d Rows:true Settled:0 First:%d Answered:%d Read:%d}", at(7), at(120), at(3), at(95), at(120)) {
		t.Errorf("read twice: %s", got)
	}
	named(at(150), at(150), at(149)) // x is answered again
	if got := known(); got != "" {
		t.Errorf("answered again: %s", got)
	}
	g.readAll("n1", at(160))
	if g.readBy("n1") != at(160) || known() != "" {
		t.Errorf("n1 has read as of %d, %s", g.readBy("n1"), known())
	}
	g.name(map[string]exchange.Answers{"n1": {Last: at(161)}}, 0)
	if g.readBy("n1") != at(160) || len(g.names) != 3 {
		t.Errorf("n1 has read as of %d, %d names", g.readBy("n1"), len(g.names))
	}
}
