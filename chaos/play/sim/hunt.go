package sim

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Hunt runs many seeds on all processors, until all of them have held or one has not.
type Hunt struct {
	Config
	From     uint64   // the first seed
	Seeds    uint64   // number of seeds; 0: until the context ends
	First    []uint64 // seeds to run before the others
	Digests  bool     // compute Tally.Digest, which takes time
	LuaEvery uint64   // every LuaEvery-th seed is decided by the production Lua; 0: none
	// Progress is called about once a second, by one goroutine at a time. It may be nil.
	Progress func(Tally)
}

// Tally is the result of a hunt, so far or at its end.
type Tally struct {
	Seeds   uint64 // seeds that were run to their end
	Lua     uint64 // those of them that the Lua decided
	Virtual time.Duration
	Took    time.Duration
	Counts  Counts
	Digest  Digest   // of all seeds, in order; zero if Hunt.Digests is false
	Broken  *Outcome // of the first seed that did not hold, in the order of the hunt; nil: all held
}

// hunting is a hunt under way.
type hunting struct {
	*Hunt
	mu      sync.Mutex
	tally   Tally
	next    uint64
	err     error
	begun   time.Time
	told    time.Time
	digests []seedDigest
}

// Run hunts. It returns the outcome of the first seed that does not hold, in the order of the hunt,
// however many processors there are. An error says that the simulation itself has a mistake.
func (h *Hunt) Run(ctx context.Context) (Tally, error) {
	g := &hunting{Hunt: h, begun: time.Now(), told: time.Now()}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed, ok := g.take(ctx)
				if !ok {
					return
				}
				c := g.Config
				c.Lua = c.Lua || g.LuaEvery > 0 && seed%g.LuaEvery == 0
				play := Run
				if g.Digests {
					play = RunDigested
				}
				o, err := play(Draw(seed, c))
				g.put(o, err)
			}
		})
	}
	workers.Wait()
	g.tally.Took = time.Since(g.begun)
	if g.Digests {
		g.tally.Digest = together(g.digests)
	}
	return g.tally, g.err
}

// take returns the next seed, or false if there is none left or the hunt is over.
func (g *hunting) take(ctx context.Context) (uint64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.next
	all := uint64(len(g.First)) + g.Seeds
	if ctx.Err() != nil || g.tally.Broken != nil || g.err != nil || g.Seeds > 0 && n >= all {
		return 0, false
	}
	g.next++
	if n < uint64(len(g.First)) {
		return g.First[n], true
	}
	return g.From + n - uint64(len(g.First)), true
}

// put adds an outcome to the tally.
func (g *hunting) put(o *Outcome, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.err = err
		return
	}
	t := &g.tally
	if o.Broken != nil && (t.Broken == nil || g.before(o.Plan.Seed, t.Broken.Plan.Seed)) {
		t.Broken = o
	}
	t.Seeds++
	if o.Plan.Lua {
		t.Lua++
	}
	if g.Digests {
		g.digests = append(g.digests, seedDigest{o.Plan.Seed, o.Digest})
	}
	t.Virtual += span(o.Plan.End)
	t.Counts.Add(&o.Counts)
	if g.Progress != nil && time.Since(g.told) >= time.Second {
		g.told = time.Now()
		now := *t
		now.Took = time.Since(g.begun)
		g.Progress(now)
	}
}

// before reports whether seed a is run before seed b.
func (g *hunting) before(a, b uint64) bool {
	first := func(s uint64) int {
		if i := slices.Index(g.First, s); i >= 0 {
			return i
		}
		return len(g.First)
	}
	if i, j := first(a), first(b); i != j {
		return i < j
	}
	return a < b
}
