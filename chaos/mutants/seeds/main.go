// Seeds runs seeds of the simulator until one breaks an invariant, and prints a line about it. It
// is quotad simulate without shrinking and explaining. Mutants need no more, and it builds in half
// the time. With -demand it runs a demand of package workload without faults instead; its false
// denials must stay below a budget.
//
// Exit codes: 0 everything held, 2 bad usage, 3 something did not.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/play/sim"
	"github.com/quotad/quotad/chaos/play/workload"
	"github.com/quotad/quotad/chaos/rivals"
)

const (
	exitUsage  = 2
	exitBroken = 3
)

func main() {
	var h sim.Hunt
	var window time.Duration
	length, algorithm := time.Minute, ""
	flag.Uint64Var(&h.Seeds, "seeds", 500, "how many seeds to run")
	flag.Uint64Var(&h.From, "from", 1, "the first seed")
	flag.DurationVar(&length, "for", length, "virtual time of each")
	flag.IntVar(&h.Regions, "regions", 0, "2 to 10 regions; 0: the seed chooses")
	flag.IntVar(&h.Nodes, "nodes", 0, "1 to 3 nodes in each region; 0: the seed chooses")
	flag.IntVar(&h.Limits, "limits", 0, "1 to 3 limits; 0: the seed chooses")
	flag.StringVar(&algorithm, "algorithm", "", "of all limits; none: the seed chooses")
	flag.DurationVar(&window, "window", 0, "of all limits; 0: the seed chooses")
	flag.Func("faults", "kinds of faults, separated by commas; none: the seed chooses", func(kinds string) error {
		for kind := range strings.SplitSeq(kinds, ",") {
			h.Faults = append(h.Faults, sim.Deed(kind))
		}
		return nil
	})
	flag.Uint64Var(&h.LuaEvery, "lua-every", 0, "one seed of so many is decided by the Lua scripts; 0: none")
	flag.BoolVar(&h.Wider, "wider", false, "the wider draw")
	flag.BoolVar(&h.Tight, "tight", false, "the tight draw")
	flag.BoolVar(&h.Envoys, "envoys", false, "Envoys are assigned parts of the only limit")
	flag.BoolVar(&h.Varied, "varied", false, "limits say what the other draws leave out, charges are settled, and buckets reset")
	flag.BoolVar(&h.Owing, "owing", false, "limits are charged costs that are known only afterwards")
	flag.BoolVar(&h.Classes, "classes", false, "limits have classes, and requests of them")
	flag.BoolVar(&h.Prefetch, "prefetch", false, "nodes hold units of most limits that allow it")
	flag.BoolVar(&h.Calendar, "calendar", false, "fixed windows count by the calendar")
	flag.BoolVar(&h.Spanning, "spanning", false, "requests span shards, and calls have several requests")
	flag.BoolVar(&h.Busy, "busy", false, "stores take time, and are asked for more than they can decide")
	flag.BoolVar(&h.Documents, "documents", false, "the limits document changes in substance, again and again")
	demand := flag.String("demand", "", "a demand to run instead, by a seed of its own each time")
	most := flag.Int64("most", 0, "with -demand, the most that may be denied falsely, parts per million of what one limiter admits")
	flag.Parse()
	if *demand != "" {
		budget(*demand, algorithm, h, rivals.Millionths(*most))
		return
	}
	h.For, h.Window, h.Algorithm = length.Microseconds(), window.Microseconds(), algorithms.Kind(algorithm)
	debug.SetGCPercent(400) // most garbage is short-lived
	tally, err := h.Run(context.Background())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage)
	case tally.Broken != nil:
		broken(tally.Broken.Plan.Seed, tally.Broken.Broken)
	}
}

// broken ends the program and reports a seed and what it broke.
func broken(seed uint64, what any) {
	fmt.Printf("%d %v\n", seed, what)
	os.Exit(exitBroken)
}

// budget runs a demand of ten seconds on three regions, with one seed after another, until the
// false denials exceed the budget.
func budget(demand, algorithm string, h sim.Hunt, most rivals.Millionths) {
	s := workload.Usual()
	s.Length, s.Algorithm = 10*workload.Second, algorithm
	if algorithms.Kind(algorithm).Bucket() {
		s.Burst = s.Limit
	}
	for seed := h.From; seed < h.From+h.Seeds; seed++ {
		w, err := workload.Make(demand, s, seed)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitUsage)
		}
		n := rivals.Uniform(w.Regions, 40_000)
		f := rivals.Measure(w, sim.Quotad{}.Run(w, n, seed), n)
		if f.FalseRate > most {
			broken(seed, fmt.Sprintf("use: of %s %v is denied falsely, at most %v may be", demand, f.FalseRate, most))
		}
	}
}
