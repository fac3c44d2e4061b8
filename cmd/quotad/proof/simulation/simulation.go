// Package simulation plays seeded worlds in virtual time for quotad simulate, and reports the
// results. It can also compare quotad with other ways of limiting under the same demands.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/play/sim"
	"github.com/quotad/quotad/cmd/quotad/build"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// Simulation holds the options of quotad simulate.
type Simulation struct {
	Hunt      sim.Hunt
	Length    time.Duration
	Algorithm string
	Window    time.Duration
	Faults    []string
	Only      string
	Output    string // table or json
	Compares  bool
	Plot      string // path
}

// complete checks the options and fills in what depends on them.
func (s *Simulation) complete() (err error) {
	if err := s.check(); err != nil {
		return err
	}
	h := &s.Hunt
	h.For, h.Algorithm, h.Window = s.Length.Microseconds(), algorithms.Kind(s.Algorithm), s.Window.Microseconds()
	if h.Faults, err = faultsOf(s.Faults); err == nil {
		h.Only, err = actsOf(s.Only)
	}
	return err
}

// check returns why the options cannot be.
func (s *Simulation) check() error {
	switch c := &s.Hunt.Config; {
	case s.Length < 30*time.Second || s.Length > 24*time.Hour:
		return fmt.Errorf("--for %s: give 30s to 24h", show.Span(s.Length))
	case c.Regions != 0 && (c.Regions < 2 || c.Regions > 10):
		return fmt.Errorf("--regions %d: give 2 to 10, or 0 for whatever the seed chooses",
			c.Regions)
	case c.Nodes < 0 || c.Nodes > 3:
		return fmt.Errorf("--nodes %d: give 1 to 3, or 0 for whatever the seed chooses", c.Nodes)
	case c.Limits < 0 || c.Limits > 3:
		return fmt.Errorf("--limits %d: give 1 to 3, or 0 for whatever the seed chooses", c.Limits)
	case s.Window < 0 || s.Window > 24*time.Hour || s.Window%time.Second != 0:
		return fmt.Errorf("--window %s: give whole seconds to 24h, or 0 for whatever the seed chooses", show.Span(s.Window))
	case c.Tight && (c.Wider || c.Regions+c.Nodes+c.Limits > 0 || s.Window > 0 || len(s.Faults) > 0):
		return errors.New("--tight draws regions, nodes, limits, windows and faults by itself: leave out --wider and the flags that say these")
	case c.Envoys && c.Documents:
		return errors.New("--documents cannot change the limits that --envoys draws: leave one of them out")
	case s.Algorithm != "" && !slices.Contains(algorithms.Kinds, algorithms.Kind(s.Algorithm)):
		return fmt.Errorf("--algorithm %q: choose %s", s.Algorithm, show.Listed(algorithms.Kinds))
	case s.Plot != "" && !s.Compares:
		return errors.New("--plot says where the plot of --compare goes: add --compare, or leave it out")
	}
	return nil
}

// faultsOf returns the kinds of faults by their names.
func faultsOf(names []string) (all []sim.Deed, err error) {
	for _, f := range names {
		if !slices.Contains(sim.Faults, sim.Deed(f)) {
			return nil, fmt.Errorf("--faults %q: choose of %s", f, FaultNames())
		}
		all = append(all, sim.Deed(f))
	}
	return all, nil
}

// actsOf reads numbers of acts; none: all are kept.
func actsOf(list string) (all []int, err error) {
	if list == "" {
		return nil, nil
	}
	for id := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(id))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("--only %q: give numbers of acts separated by commas, such as 3,17", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// Run plays the worlds or the comparison.
func (s *Simulation) Run(ctx context.Context, out, errs io.Writer) error {
	if err := s.complete(); err != nil {
		return exit.Usage(err)
	}
	if s.Compares {
		return s.compare(ctx, out)
	}
	debug.SetGCPercent(800) // there is much short-lived garbage, and little live memory
	s.Hunt.Digests = s.Output == "json"
	if s.Output == "table" {
		s.Hunt.Progress = progressTo(errs)
	}
	tally, err := s.Hunt.Run(ctx)
	if err != nil {
		return err
	}
	var failure *sim.Failure
	if tally.Broken != nil {
		if failure, err = sim.Explain(tally.Broken.Plan); err != nil {
			return err
		}
	}
	inWords := func(w io.Writer) error { return s.tell(w, tally, failure) }
	err = show.Result(out, s.Output, s.document(tally, failure), inWords)
	if err == nil && failure != nil {
		err = exit.Silently(exit.Broken)
	}
	return err
}

// replay returns the command that runs a shrunk plan again.
func (s *Simulation) replay(f *sim.Failure) string {
	command := fmt.Sprintf("quotad simulate --from %d --seeds 1 --for %s", f.Seed,
		show.Span(s.Length))
	add := func(when bool, format string, args ...any) {
		if when {
			command += fmt.Sprintf(format, args...)
		}
	}
	add(s.Hunt.Regions != 0, " --regions %d", s.Hunt.Regions)
	add(s.Hunt.Nodes != 0, " --nodes %d", s.Hunt.Nodes)
	add(s.Hunt.Limits != 0, " --limits %d", s.Hunt.Limits)
	add(s.Algorithm != "", " --algorithm %s", s.Algorithm)
	add(s.Window != 0, " --window %s", show.Span(s.Window))
	add(len(s.Faults) > 0, " --faults %s", strings.Join(s.Faults, ","))
	add(s.Hunt.Wider, " --wider")
	add(s.Hunt.Tight, " --tight")
	add(s.Hunt.Prefetch, " --prefetch")
	add(s.Hunt.Envoys, " --envoys")
	add(s.Hunt.Owing, " --owing")
	add(s.Hunt.Classes, " --classes")
	add(s.Hunt.Large, " --large")
	add(s.Hunt.Varied, " --varied")
	add(s.Hunt.Busy, " --busy")
	add(s.Hunt.Calendar, " --calendar")
	add(s.Hunt.Spanning, " --spanning")
	add(s.Hunt.Documents, " --documents")
	add(f.Lua, " --lua-every 1")
	add(!f.Lua, " --lua-every 0")
	ids := make([]string, len(f.Acts))
	for i, a := range f.Acts {
		ids[i] = strconv.Itoa(a.ID)
	}
	add(len(ids) > 0, " --only %s", strings.Join(ids, ","))
	return command
}

// tell prints the results in words.
func (s *Simulation) tell(w io.Writer, t sim.Tally, f *sim.Failure) error {
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		errs = append(errs, err)
	}
	line("%s", progressLine(t))
	line("faults by kind: %s", deeds(t.Counts))
	line("rows of the fault matrix that fired: %s", firedRows(t.Counts))
	line("decided from a node's memory: %d admitted of prefetched units, %d denied",
		t.Counts.Spent, t.Counts.Remembered)
	if t.Counts.Refused > 0 {
		line("requests for which a store had no time: %d", t.Counts.Refused)
	}
	if t.Counts.Large > 0 {
		line("requests of large costs: %d, of which %d were admitted in the end", t.Counts.Large, t.Counts.LargeAdmitted)
	}
	if t.Counts.Classed > 0 {
		line("admitted requests that were held to their class: %d", t.Counts.Classed)
	}
	if t.Counts.Proxied > 0 {
		line("admitted by Envoys themselves: %d", t.Counts.Proxied)
	}
	line("%s", tightness(t.Counts.Tightness))
	line("buckets in a region that had to be decided with its store in the end: %d, others: %d",
		t.Counts.Liveness.Judged, t.Counts.Liveness.Not)
	if f == nil {
		line("ok: nothing was broken in %s", show.Counted(int(t.Seeds), "seed"))
		return errors.Join(errs...)
	}
	line("\nBROKEN by seed %d, %s", f.Seed, build.This())
	line("invariant %s: %s\n", f.Broken.Invariant, f.Broken)
	line("what it takes (%d of %d acts):", len(f.Acts), f.Drawn)
	for _, a := range f.Acts {
		line("  %s", a)
	}
	for _, r := range f.Regions {
		line("  region %s: weight %d, %s, clocks %s ahead, drifting %d ppm", r.Name, r.Weight,
			show.Counted(r.Nodes, "node"), time.Duration(r.Ahead)*time.Microsecond, r.Drift)
	}
	line("\n%s\n%s\nreplay: %s", f.Texts(), f.Timeline, s.replay(f))
	return errors.Join(errs...)
}

// tightness says how near the seeds came to what the judge allows.
func tightness(t sim.Tightness) string {
	return fmt.Sprintf("buckets that are allowed an excess: %d, at half of it or more %d; others: %d, within a tenth of their limit %d; probes: %d, of which %d had to be given most of what they asked for",
		t.Excused, t.Half, t.Exact, t.Tenth, t.Probes, t.Demanding)
}

// progressTo returns a function that shows how far a hunt is: on one line that is redrawn on a
// terminal, else now and then.
func progressTo(w io.Writer) func(sim.Tally) {
	drawn := show.IsTerminal(w)
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
		t.Seeds, t.Lua, float64(t.Seeds)/seconds, show.Span(t.Virtual),
		float64(t.Counts.Events)/seconds, t.Counts.Requests, rows, len(sim.RowNames))
}

// deeds lists what was done, most frequent first.
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

// firedRows lists the rows of the fault matrix that fired, and names those that did not.
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

// FaultNames lists the faults, separated by commas.
func FaultNames() string { return show.Listed(sim.Faults) }
