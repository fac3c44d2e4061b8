package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/sim"
)

// simulation is what quotad simulate was asked for.
type simulation struct {
	hunt      sim.Hunt
	length    time.Duration
	algorithm string
	window    time.Duration
	faults    []string
	only      string
	output    string
	compares  bool
	plot      string
}

func simulateCommand() *cobra.Command {
	var s simulation
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

With --compare it plays 39 demands without faults instead, and prints a table of what quotad and others make of them:
a static split, one pooled limiter without distance, one bucket asked over the ocean, counters that are synchronised
every 5 s, a coordinator with grants of 10 s, and the two designs of Raghavan et al. 2007.

Exit codes: 0 everything held, 2 bad usage, 3 something did not.`,
		Example: `  quotad simulate --seeds 1000
  quotad simulate --seeds 100 --for 10m --regions 10 --algorithm sliding_window_log
  quotad simulate --from 4711 --seeds 1
  quotad simulate --compare --plot compare.svg`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.complete(); err != nil {
				return usageError(err)
			}
			if s.compares {
				return s.compare(cmd)
			}
			return s.run(cmd)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&s.hunt.Seeds, "seeds", 500, "how many seeds to run; 0: until interrupted")
	f.Uint64Var(&s.hunt.From, "from", 1, "the first seed")
	f.DurationVar(&s.length, "for", time.Minute, "virtual time of each, 30s to 24h, of which all faults are over 12 s before the end")
	f.IntVar(&s.hunt.Regions, "regions", 0, "2 to 10 regions; 0: the seed chooses 2 to 5")
	f.IntVar(&s.hunt.Nodes, "nodes", 0, "1 to 3 nodes in each region; 0: the seed chooses 1 or 2")
	f.IntVar(&s.hunt.Limits, "limits", 0, "1 to 3 limits; 0: the seed chooses")
	f.StringVar(&s.algorithm, "algorithm", "", "of all limits: "+algorithmNames()+"; none: the seed chooses")
	f.DurationVar(&s.window, "window", 0, "of all limits, whole seconds to 24h; 0: the seed chooses")
	f.StringSliceVar(&s.faults, "faults", nil, "kinds of faults, of which there are then many: "+faultNames()+"; none: the seed chooses")
	f.Uint64Var(&s.hunt.LuaEvery, "lua-every", 50, "one seed of so many is decided by the Lua scripts on an embedded Redis; 0: none")
	f.BoolVar(&s.hunt.Wider, "wider", false, "the wider draw, by random numbers of its own: sticky routing, clocks of single machines, up to three nodes, three windows and more")
	f.BoolVar(&s.hunt.Spanning, "spanning", false, "also requests that span several shards of a store, and several requests in one call, by random numbers of their own")
	f.StringVar(&s.only, "only", "", "numbers of the acts to keep of each seed, separated by commas: what a failure prints")
	f.BoolVar(&s.compares, "compare", false, "compare quotad with other ways of limiting; --from is the seed of the demands")
	f.StringVar(&s.plot, "plot", "", "with --compare: write a plot there, an SVG")
	_ = cmd.MarkFlagFilename("plot", "svg") // fails for a flag that is not there
	outputFlag(cmd, &s.output)
	return cmd
}

// complete checks what was asked for.
func (s *simulation) complete() error {
	switch c := &s.hunt.Config; {
	case s.length < 30*time.Second || s.length > 24*time.Hour:
		return fmt.Errorf("--for %s: give 30s to 24h", span(s.length))
	case c.Regions != 0 && (c.Regions < 2 || c.Regions > 10):
		return fmt.Errorf("--regions %d: give 2 to 10, or 0 for whatever the seed chooses", c.Regions)
	case c.Nodes < 0 || c.Nodes > 3:
		return fmt.Errorf("--nodes %d: give 1 to 3, or 0 for whatever the seed chooses", c.Nodes)
	case c.Limits < 0 || c.Limits > 3:
		return fmt.Errorf("--limits %d: give 1 to 3, or 0 for whatever the seed chooses", c.Limits)
	case s.window < 0 || s.window > 24*time.Hour || s.window%time.Second != 0:
		return fmt.Errorf("--window %s: give whole seconds to 24h, or 0 for whatever the seed chooses", span(s.window))
	case s.algorithm != "" && !slices.Contains(algorithms.Kinds, algorithms.Kind(s.algorithm)):
		return fmt.Errorf("--algorithm %q: choose %s", s.algorithm, algorithmNames())
	}
	s.hunt.For, s.hunt.Algorithm, s.hunt.Window = s.length.Microseconds(), algorithms.Kind(s.algorithm), s.window.Microseconds()
	for _, f := range s.faults {
		if !slices.Contains(sim.Faults, sim.Deed(f)) {
			return fmt.Errorf("--faults %q: choose of %s", f, faultNames())
		}
		s.hunt.Faults = append(s.hunt.Faults, sim.Deed(f))
	}
	if s.plot != "" && !s.compares {
		return errors.New("--plot says where the plot of --compare goes: add --compare, or leave it out")
	}
	if s.only == "" {
		return nil
	}
	for id := range strings.SplitSeq(s.only, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(id))
		if err != nil || n < 0 {
			return fmt.Errorf("--only %q: give numbers of acts separated by commas, such as 3,17", s.only)
		}
		s.hunt.Only = append(s.hunt.Only, n)
	}
	return nil
}

func (s *simulation) run(cmd *cobra.Command) error {
	debug.SetGCPercent(800) // short-lived garbage, and little that lives
	s.hunt.Digests = s.output == "json"
	if s.output == "table" {
		s.hunt.Progress = progressTo(cmd.ErrOrStderr())
	}
	tally, err := s.hunt.Run(cmd.Context())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	var failure *sim.Failure
	if tally.Broken != nil {
		if failure, err = sim.Explain(tally.Broken.Plan); err != nil {
			return err
		}
	}
	if s.output == "json" {
		err = printJSON(out, s.document(tally, failure))
	} else {
		err = s.tell(out, tally, failure)
	}
	if err == nil && failure != nil {
		err = silently(exitBroken)
	}
	return err
}

// replay is the command that runs a shrunk plan again.
func (s *simulation) replay(f *sim.Failure) string {
	command := fmt.Sprintf("quotad simulate --from %d --seeds 1 --for %s", f.Seed, span(s.length))
	if s.hunt.Regions != 0 {
		command += fmt.Sprintf(" --regions %d", s.hunt.Regions)
	}
	if s.hunt.Nodes != 0 {
		command += fmt.Sprintf(" --nodes %d", s.hunt.Nodes)
	}
	if s.hunt.Limits != 0 {
		command += fmt.Sprintf(" --limits %d", s.hunt.Limits)
	}
	if s.algorithm != "" {
		command += " --algorithm " + s.algorithm
	}
	if s.window != 0 {
		command += " --window " + span(s.window)
	}
	if len(s.faults) > 0 {
		command += " --faults " + strings.Join(s.faults, ",")
	}
	if s.hunt.Wider {
		command += " --wider"
	}
	if s.hunt.Spanning {
		command += " --spanning"
	}
	if f.Lua {
		command += " --lua-every 1"
	} else {
		command += " --lua-every 0"
	}
	ids := make([]string, len(f.Acts))
	for i, a := range f.Acts {
		ids[i] = strconv.Itoa(a.ID)
	}
	if len(ids) > 0 {
		command += " --only " + strings.Join(ids, ",")
	}
	return command
}

// faultNames lists the faults for a person.
func faultNames() string {
	names := make([]string, len(sim.Faults))
	for i, f := range sim.Faults {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// tell prints what came of it for a person.
func (s *simulation) tell(w io.Writer, t sim.Tally, f *sim.Failure) error {
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		errs = append(errs, err)
	}
	line("%s", progressLine(t))
	line("faults by kind: %s", deeds(t.Counts))
	line("rows of the fault matrix that fired: %s", firedRows(t.Counts))
	if f == nil {
		line("ok: nothing was broken in %s", counted(int(t.Seeds), "seed"))
		return errors.Join(errs...)
	}
	line("\nBROKEN by seed %d, %s", f.Seed, thisBuild())
	line("invariant %s: %s\n", f.Broken.Invariant, f.Broken)
	line("what it takes (%d of %d acts):", len(f.Acts), f.Drawn)
	for _, a := range f.Acts {
		line("  %s", a)
	}
	for _, r := range f.Regions {
		line("  region %s: weight %d, %s, clocks %s ahead, drifting %d ppm", r.Name, r.Weight, counted(r.Nodes, "node"), time.Duration(r.Ahead)*time.Microsecond, r.Drift)
	}
	line("\n%s\n%s\nreplay: %s", f.Document, f.Timeline, s.replay(f))
	return errors.Join(errs...)
}

// progressTo shows how far a hunt is: on one line where that can be drawn over, else now and then.
func progressTo(w io.Writer) func(sim.Tally) {
	drawn := isTerminal(w)
	var last time.Duration
	return func(t sim.Tally) {
		switch {
		case drawn:
			fmt.Fprintf(w, "\r\033[K%s", progressLine(t))
		case t.Took-last >= 10*time.Second:
			last = t.Took
			fmt.Fprintln(w, progressLine(t))
		}
	}
}

func progressLine(t sim.Tally) string {
	seconds := max(t.Took.Seconds(), 0.001)
	rows := 0
	for row := range sim.RowNames {
		if t.Counts.Rows[row] > 0 {
			rows++
		}
	}
	return fmt.Sprintf("%d seeds (%d by Lua), %.0f a second, %s of virtual time, %.0f events a second, %d requests, %d of %d rows of faults fired",
		t.Seeds, t.Lua, float64(t.Seeds)/seconds, span(t.Virtual), float64(t.Counts.Events)/seconds, t.Counts.Requests, rows, len(sim.RowNames))
}

// deeds lists what was done, most often first.
func deeds(c sim.Counts) string {
	names := make([]string, 0, len(c.Deeds))
	for d := range c.Deeds {
		if !d.Load() {
			names = append(names, string(d))
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, c.Deeds[sim.Deed(name)])
	}
	return strings.Join(names, ", ")
}

// firedRows lists the rows that fired, and names those that did not.
func firedRows(c sim.Counts) string {
	var fired, not []string
	for row := range len(c.Rows) {
		name, known := sim.RowNames[row]
		switch {
		case !known:
		case c.Rows[row] > 0:
			fired = append(fired, strconv.Itoa(row))
		default:
			not = append(not, fmt.Sprintf("%d (%s)", row, name))
		}
	}
	if len(not) == 0 {
		return strings.Join(fired, ", ")
	}
	return strings.Join(fired, ", ") + "; never: " + strings.Join(not, ", ")
}
