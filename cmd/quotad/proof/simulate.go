package proof

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/proof/simulation"
	"github.com/quotad/quotad/cmd/quotad/show"
)

func simulateCommand() *cobra.Command {
	var s simulation.Simulation
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Try to break the promise: seeded worlds with faults, in virtual time",
		Long: `simulate plays whole regions in virtual time, made of the production code: the exchange of rights, recovery, the limits
document, the wire formats, and the scripts (their Go twins, and on every 50th seed the Lua itself on an embedded Redis).
A seed says all: regions, limits, demand, and what goes wrong, such as cuts, lost and repeated messages, nodes that die
at any moment, lost data, stale copies, wrong clocks, failing disks and lies. After every event it checks that shares add
up, that nothing is announced that the journal has not, that no row goes back; over all answers an outside judge checks
the ceiling; at the end all faults heal, and everything must be well again.

The same seed gives the same run on every machine. One that breaks the promise is shrunk to the fewest acts, and printed
with a timeline by region and the command that replays it.

With --compare it plays 42 demands without faults instead, and prints a table of what quotad and others make of them:
a static split, one pooled limiter without distance, one bucket asked over the ocean, counters that are synchronised
every 5 s, and a coordinator with grants of 10 s.

Exit codes: 0 everything held, 2 bad usage, 3 something did not.`,
		Example: `  quotad simulate --seeds 1000
  quotad simulate --seeds 100 --for 10m --regions 10 --algorithm sliding_window_log
  quotad simulate --from 4711 --seeds 1
  quotad simulate --compare --plot compare.svg`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	simulateFlags(cmd.Flags(), &s)
	_ = cmd.MarkFlagFilename("plot", "svg") // fails only for an unknown flag
	command.OutputFlag(cmd, &s.Output)
	return cmd
}

func simulateFlags(f *pflag.FlagSet, s *simulation.Simulation) {
	f.Uint64Var(&s.Hunt.Seeds, "seeds", 500, "how many seeds to run; 0: until interrupted")
	f.Uint64Var(&s.Hunt.From, "from", 1, "the first seed")
	f.DurationVar(&s.Length, "for", time.Minute,
		"virtual time of each, 30s to 24h, of which all faults are over 12 s before the end")
	f.IntVar(&s.Hunt.Regions, "regions", 0, "2 to 10 regions; 0: the seed chooses 2 to 5")
	f.IntVar(&s.Hunt.Nodes, "nodes", 0, "1 to 3 nodes in each region; 0: the seed chooses 1 or 2")
	f.IntVar(&s.Hunt.Limits, "limits", 0, "1 to 3 limits; 0: the seed chooses")
	f.StringVar(&s.Algorithm, "algorithm", "", "of all limits: "+show.Listed(algorithms.Kinds)+
		"; none: the seed chooses")
	f.DurationVar(&s.Window, "window", 0,
		"of all limits, whole seconds to 24h; 0: the seed chooses")
	f.StringSliceVar(&s.Faults, "faults", nil, "kinds of faults, of which there are then many: "+
		simulation.FaultNames()+"; none: the seed chooses")
	f.Uint64Var(&s.Hunt.LuaEvery, "lua-every", 50,
		"one seed of so many is decided by the Lua scripts on an embedded Redis; 0: none")
	f.BoolVar(&s.Hunt.Wider, "wider", false,
		"the wider draw, by random numbers of its own: sticky routing, clocks of single machines, up to three nodes, nodes that come and go, operators' words, three windows and more")
	f.BoolVar(&s.Hunt.Tight, "tight", false,
		"the tight draw instead, by random numbers of its own: short windows used up without an allowance, and mishaps that come near what is printed for them")
	f.BoolVar(&s.Hunt.Spanning, "spanning", false,
		"also requests that span several shards of a store, and several requests in one call, by random numbers of their own")
	f.BoolVar(&s.Hunt.Documents, "documents", false,
		"an operator edits the limits document, in some regions first: numbers, weights, limits taken out and put back, regions fenced, returned, removed and added; by random numbers of their own")
	f.BoolVar(&s.Hunt.Envoys, "envoys", false,
		"Envoys are assigned parts of the only limit, a token bucket or a window (RLQS), by random numbers of their own")
	f.BoolVar(&s.Hunt.Prefetch, "prefetch", false,
		"nodes hold units of most limits that allow it (consistency: prefetch), and machines stand still with their clocks, by random numbers of their own")
	f.BoolVar(&s.Hunt.Owing, "owing", false,
		"limits are charged costs of uses that are known only afterwards (charge: always), up to twice the limit, some of them unasked, by random numbers of their own")
	f.BoolVar(&s.Hunt.Large, "large", false,
		"some requests cost up to the whole limit, and their callers come again a second later, by random numbers of their own")
	f.BoolVar(&s.Hunt.Classes, "classes", false,
		"limits have classes of which each may use a part of what a region holds, and requests say one, none, or one that no limit has, by random numbers of their own")
	f.BoolVar(&s.Hunt.Varied, "varied", false,
		"limits have weights of their own, also zero, borrowing limits, on_store_failure: allow and shadow; charges of all kinds are settled, and buckets reset, by random numbers of their own")
	f.BoolVar(&s.Hunt.Busy, "busy", false,
		"calls to stores take time, and callers ask for more than they can decide, so that requests queue, often for one of several servers of a store, by random numbers of their own")
	f.BoolVar(&s.Hunt.Calendar, "calendar", false,
		"fixed windows count by the calendar of a time zone, about the end of a month, a year or a day on which clocks are set, by random numbers of their own")
	f.StringVar(&s.Only, "only", "",
		"numbers of the acts to keep of each seed, separated by commas: what a failure prints")
	f.BoolVar(&s.Compares, "compare", false,
		"compare quotad with other ways of limiting; --from is the seed of the demands")
	f.StringVar(&s.Plot, "plot", "", "with --compare: write a plot there, an SVG")
}
