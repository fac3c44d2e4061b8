package sim

import (
	"flag"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds to run")
	from  = flag.Uint64("from", 1, "the first of them")
	lua   = flag.Bool("lua", false, "by the Lua scripts")
	kind  = flag.String("kind", "", "algorithm")
)

func TestSeeds(t *testing.T) {
	begun := time.Now()
	var sum Counts
	found := 0
	for seed := *from; seed < *from+uint64(*seeds); seed++ {
		p := Draw(seed, Config{For: 60_000_000, Algorithm: algorithms.Kind(*kind), Lua: *lua})
		o, err := Run(p)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(&o.Counts)
		if o.Broken != nil {
			t.Errorf("seed %d: %v", seed, o.Broken)
			if found++; found > 25 {
				break
			}
		}
	}
	t.Logf("%v for each seed; %+v", time.Since(begun)/time.Duration(*seeds), sum)
}

func TestTrace(t *testing.T) {
	p := Draw(*from, Config{For: 60_000_000, Algorithm: algorithms.Kind(*kind), Lua: *lua})
	if o, err := Run(p); err != nil || o.Broken == nil {
		t.Fatal(o, err)
	}
	p = Shrink(p)
	o, err := Trace(p, 60)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(p.Document)
	for _, r := range p.Regions {
		t.Logf("%+v", r)
	}
	for _, a := range p.Acts {
		t.Log(a)
	}
	t.Log("\n" + o.Timeline)
}
