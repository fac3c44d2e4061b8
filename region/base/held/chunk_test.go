package held

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// holding returns a memory with a chunk of units that was charged at a time.
func holding(units quantity.Units, at time.Duration) *Memory {
	m := &Memory{}
	m.filling.Store(true)
	m.Filled(&Grant{Units: units, Answer: answer(at, 1000)})
	return m
}

// takes takes units at a time under generation 1.
func (m *Memory) takes(cost quantity.Units, now time.Duration) *Chunk {
	c, _, _ := m.Take(cost, 1, now)
	return c
}

// A chunk is as large as what the node used in an interval, but of the free units at most a fourth
// of the node's part, and at least Smallest.
func TestWant(t *testing.T) {
	const at = time.Second
	for _, tc := range []struct {
		name       string
		used, free quantity.Units
		nodes      int
		after      time.Duration
		want       quantity.Units
	}{
		{"as much as was used", 100, 100_000, 1, 10 * ms, 100},
		{"a fourth of what is free", 100, 200, 1, 10 * ms, 50},
		{"the same of two nodes", 100, 200, 2, 10 * ms, 25},
		{"the smallest", 100, 8*4*3 + 3, 3, 10 * ms, Smallest},
		{"less is free", 100, 8*4*3 - 1, 3, 10 * ms, 0},
		{"less was used", Smallest - 1, 100_000, 1, 10 * ms, 0},
		{"nothing is free", 100, 0, 1, 10 * ms, 0},
		{"over-used", 100, -50, 1, 10 * ms, 0},
		{"in the interval before", 100, 100_000, 1, 100 * ms, 100},
		{"in one before that", 100, 100_000, 1, 400 * ms, 25},
		{"long ago", 100, 100_000, 1, time.Minute, 0},
		{"all that a limit can have", 1 << 51, 1 << 51, 1, 10 * ms, 1 << 49},
		{"most nodes", 1 << 51, 1 << 51, 10_000, 10 * ms, (1 << 51) / 40_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m Memory
			m.Learn(fitted(at, tc.used, tc.free))
			if got := m.Want(tc.nodes, at-ms+tc.after); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// A node that asks the store for more than it holds, again and again, holds no more for it in the end: what it
// holds counts.
func TestWantCountsWhatIsHeld(t *testing.T) {
	const at = time.Second
	m := &Memory{}
	free, kept := quantity.Units(2000), quantity.Units(0)
	for i := range 10 {
		now := at + time.Duration(i)*ms
		used := kept + 1 // more than the chunk has
		free -= used
		m.Learn(fitted(now, used+600, free))
		want := m.Want(1, now)
		if kept += want; want > 0 {
			free -= want
			m.Filled(&Grant{Units: want, Answer: answer(now, free)})
		}
		if holds := m.Holds(now); holds != kept || kept > 500 {
			t.Fatalf("holds %d, was granted %d, and a fourth of what was free is 500", holds, kept)
		}
		if free < kept {
			return
		}
	}
	t.Fatal("too few units to show anything")
}

// One chunk is asked for at a time, and again once the answer is there, whatever it is.
func TestOneChunkIsAskedForAtATime(t *testing.T) {
	var m Memory
	m.Learn(fitted(time.Second, 100, 100_000))
	const now = 1010 * ms
	for _, g := range []*Grant{nil, {Units: 100, Answer: answer(now, 100_000)}} {
		if got := m.Want(1, now); got != 100 {
			t.Fatalf("wants %d", got)
		}
		if got := m.Want(1, now); got != 0 {
			t.Fatalf("wants %d while it asks", got)
		}
		if _, holds := m.Over(now, false); !holds {
			t.Fatal("holds nothing although a chunk is asked for")
		}
		m.Filled(g)
	}
	if c := m.takes(80, now); c == nil {
		t.Fatal("nothing was granted")
	}
	if _, _, low := m.Take(1, 1, now); !low {
		t.Error("19 of 100 are not low")
	}
	m.Want(1, now)
	if _, _, low := m.Take(1, 1, now); low {
		t.Error("low although a chunk is asked for")
	}
}

// Of a chunk so much is spent as was charged, in its cell, for Life and under its generation.
func TestTake(t *testing.T) {
	const at = time.Second
	late := length - 300*ms // its cell ends 300 ms later
	for _, tc := range []struct {
		name       string
		at, now    time.Duration
		cost       quantity.Units
		generation uint64
		want       bool
	}{
		{"all of it", at, at + ms, 100, 1, true},
		{"more", at, at + ms, 101, 1, false},
		{"an earlier generation", at, at + ms, 1, 2, false},
		{"none", at, at + ms, 1, 0, false},
		{"in time", at, at - ms + Life - 1, 1, 1, true},
		{"too late", at, at - ms + Life, 1, 1, false},
		{"at the end of its cell", late, length - ms - 1, 1, 1, true},
		{"in the next cell as far as the node knows", late, length - ms, 1, 1, false},
		{"in the next cell", late, length, 1, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := holding(100, tc.at)
			c, left, _ := m.Take(tc.cost, tc.generation, tc.now)
			if (c != nil) != tc.want || c != nil && left != 100-tc.cost {
				t.Fatalf("took %v, %d left", c != nil, left)
			}
			if c == nil {
				return
			}
			if at := c.At(tc.now); at >= c.Ends || at > storeAt(tc.now) || at < c.Now {
				t.Errorf("at %d, by the store's clock %d, in a cell that ends at %d", at,
					storeAt(tc.now), c.Ends)
			}
		})
	}
}

// What is left of a chunk goes into the next one of its cell and generation, and else back.
func TestFilled(t *testing.T) {
	const at = time.Second
	next, anew := answer(length+at, 1000), answer(at+10*ms, 1000)
	anew.Generation = 2
	for _, tc := range []struct {
		name      string
		answer    Answer
		old, sum  quantity.Units
		withdrawn bool // the region had fewer rights meanwhile
	}{
		{"of the same cell", answer(at+10*ms, 1000), 0, 150, false},
		{"after it was over", answer(at+Life+10*ms, 1000), 0, 150, false},
		{"with fewer rights", answer(at+10*ms, 1000), 0, 150, true},
		{"of the next cell", next, 70, 80, false},
		{"of another generation", anew, 70, 80, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := holding(100, at)
			m.takes(30, at+ms)
			if tc.withdrawn {
				fewer := answer(at+5*ms, 500)
				fewer.State.Share--
				m.Learn(fewer)
				if m.takes(1, at+6*ms) != nil {
					t.Error("spent although the region has fewer rights")
				}
			}
			m.filling.Store(true)
			old := m.Filled(&Grant{Units: 80, Answer: tc.answer})
			var back quantity.Units
			if old != nil {
				back = old.End()
			}
			c := m.chunk.Load()
			if back != tc.old || quantity.Units(c.left.Load()) != tc.sum || m.filling.Load() {
				t.Errorf("%d back, %d held, want %d and %d", back, c.left.Load(), tc.old, tc.sum)
			}
			if m.takes(1, tc.answer.Asked+ms) == nil && tc.answer.Generation == 1 {
				t.Error("the new chunk is not spent")
			}
		})
	}
}

// Rights that fell in another cell, or rose, end no chunk.
func TestChunkOutlivesOtherAnswers(t *testing.T) {
	m := holding(100, time.Second)
	more, next := answer(1010*ms, 900), answer(length+ms, 500)
	more.State.Share++
	next.State.Share--
	m.Learn(more)
	m.Learn(next)
	if m.takes(100, 1020*ms) == nil {
		t.Error("not spent")
	}
}

// A chunk is taken out of the memory when it is over, or when all are.
func TestOver(t *testing.T) {
	const at = time.Second
	m := holding(100, at)
	if c, holds := m.Over(at+ms, false); c != nil || !holds {
		t.Errorf("in its time: %v, %v", c != nil, holds)
	}
	c, holds := m.Over(at+Life, false)
	if c == nil || holds || c.End() != 100 || c.End() != 0 {
		t.Errorf("after its time: %v, %v", c != nil, holds)
	}
	if c, holds := m.Over(at+Life, true); c != nil || holds {
		t.Errorf("twice: %v, %v", c != nil, holds)
	}
	m = holding(100, at)
	if c, holds := m.Over(at+ms, true); c == nil || holds || m.takes(1, at+ms) != nil {
		t.Errorf("all: %v, %v", c != nil, holds)
	}
}

// What is put back of a chunk that has ended is the caller's to account for, once.
func TestPutBack(t *testing.T) {
	m := holding(100, time.Second)
	c := m.takes(30, 1010*ms)
	if got := c.PutBack(30); got != 0 || m.takes(100, 1010*ms) == nil {
		t.Errorf("%d orphaned of a chunk that goes on", got)
	}
	m = holding(100, time.Second)
	c, d := m.takes(30, 1010*ms), m.takes(20, 1010*ms)
	if left := c.End(); left != 50 {
		t.Errorf("%d left", left)
	}
	if a, b := c.PutBack(30), d.PutBack(20); a != 30 || b != 20 || c.End() != 0 {
		t.Errorf("orphaned %d and %d", a, b)
	}
}

// Callers spend, undo, refill and end chunks at the same time: each unit that was granted is spent,
// given back, orphaned or held, once.
func TestUnitsAreConserved(t *testing.T) {
	var m Memory
	var granted, spent, back, orphaned atomic.Int64
	var clock atomic.Int64 // ms
	clock.Store(1000)
	end := func(c *Chunk) {
		if c != nil {
			back.Add(int64(c.End()))
		}
	}
	fill := func(random *rand.Rand) {
		if !m.filling.CompareAndSwap(false, true) {
			return
		}
		g := Grant{Units: quantity.Units(8 + random.IntN(200)),
			Answer: answer(time.Duration(clock.Load())*ms, 1000)}
		if random.IntN(8) == 0 {
			g.Generation++
		}
		granted.Add(int64(g.Units))
		end(m.Filled(&g))
	}
	var all sync.WaitGroup
	for caller := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, caller))
			for range 20_000 {
				now := time.Duration(clock.Add(1)) * ms
				cost := quantity.Units(1 + random.IntN(9))
				switch random.IntN(40) {
				case 0:
					fill(random)
				case 1:
					over, _ := m.Over(now, random.IntN(4) == 0)
					end(over)
				default:
					switch c := m.takes(cost, now); {
					case c == nil:
					case random.IntN(3) == 0:
						orphaned.Add(int64(c.PutBack(cost)))
					default:
						spent.Add(int64(cost))
					}
				}
			}
		})
	}
	all.Wait()
	over, _ := m.Over(0, true)
	end(over)
	if sum := spent.Load() + back.Load() + orphaned.Load(); sum != granted.Load() {
		t.Errorf("granted %d; spent %d, given back %d, orphaned %d: together %d", granted.Load(),
			spent.Load(), back.Load(), orphaned.Load(), sum)
	}
	if spent.Load() == 0 || back.Load() == 0 {
		t.Errorf("spent %d, given back %d: this shows nothing", spent.Load(), back.Load())
	}
}

// heldUnits is the twin of the chunk: units in a cell and under a generation, until a time.
type heldUnits struct {
	units      quantity.Units
	cell       quantity.Cell
	generation uint64
	until      time.Duration
}

// Whatever a node does with chunks, it spends what a list of what it was granted says that it may.
func TestChunksEqualTheirTwin(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		var m Memory
		var twin *heldUnits
		var generation uint64 = 1
		now := time.Second
		for range rapid.IntRange(1, 100).Draw(r, "steps") {
			now += time.Duration(rapid.IntRange(0, 1500).Draw(r, "passes")) * ms
			what := []string{"take", "take", "take", "undo", "fill", "sweep", "loss"}
			switch rapid.SampledFrom(what).Draw(r, "what") {
			case "take":
				cost := quantity.Units(rapid.IntRange(1, 40).Draw(r, "cost"))
				may := twin != nil && twin.units >= cost && twin.generation == generation &&
					now < twin.until
				c, left, _ := m.Take(cost, generation, now)
				if (c != nil) != may {
					r.Fatalf("at %v: took %d: %v, of %+v under %d", now, cost, c != nil, twin,
						generation)
				}
				if may {
					twin.units -= cost
					if at := c.At(now); left != twin.units || at >= c.Ends ||
						c.State.Cell != twin.cell || at > storeAt(now) {
						r.Fatalf("at %v: %d left, at %d: %+v", now, left, at, twin)
					}
				}
			case "undo":
				if c := m.takes(1, now); c != nil && generation == 1 {
					c.PutBack(1)
				} else if c != nil {
					twin.units--
				}
			case "fill":
				g := Grant{Units: quantity.Units(rapid.IntRange(8, 90).Draw(r, "units")),
					Answer: answer(now+ms, 1000)}
				g.Generation = generation
				m.filling.Store(true)
				old := m.Filled(&g)
				ends := time.Duration(g.Ends.Sub(g.Now)) * time.Microsecond
				filled := &heldUnits{g.Units, g.State.Cell, generation, now + min(Life, ends)}
				switch {
				case twin == nil:
				case twin.cell == filled.cell && twin.generation == generation:
					filled.units += twin.units
				case old == nil || old.End() != twin.units:
					r.Fatalf("at %v: the rest of %+v is not given back", now, twin)
				}
				twin = filled
				now = g.Heard
			case "sweep":
				over, _ := m.Over(now, false)
				ends := twin != nil && now >= twin.until
				if (over != nil) != ends || ends && over.End() != twin.units {
					r.Fatalf("at %v: swept %v of %+v", now, over != nil, twin)
				}
				if ends {
					twin = nil
				}
			case "loss":
				generation++
			}
		}
	})
}

func TestTakeAllocatesNothing(t *testing.T) {
	m := holding(1<<40, time.Second)
	if n := testing.AllocsPerRun(1000, func() { m.takes(1, 1010*ms) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
