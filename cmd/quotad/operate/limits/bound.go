package limits

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/held"
)

func boundCommand() *cobra.Command {
	var a assumptions
	var only, output string
	cmd := &cobra.Command{
		Use:               "bound FILE",
		Short:             "Show what each limit promises, and by how much which mishap can exceed it",
		Long:              boundHelp,
		Example:           "  quotad limits bound limits.yaml --limit account-minute --nodes 3 --clock 1s",
		Args:              command.OneArgument("limits document", "limits.yaml"),
		ValidArgsFunction: command.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(cmd.Flags().Changed); err != nil {
				return err
			}
			d, err := Load(args[0])
			if err != nil {
				return err
			}
			limits, err := named(d, Path(args[0]), only)
			if err != nil {
				return err
			}
			b := bound(d, limits, a)
			inWords := func(w io.Writer) error { return b.print(w, a) }
			return show.Result(cmd.OutOrStdout(), output, b, inWords)
		},
	}
	cmd.Flags().StringVar(&only, "limit", "", "only the limits of this `name`")
	a.flags(cmd)
	command.OutputFlag(cmd, &output)
	return cmd
}

const boundHelp = `bound shows what is promised of each limit of a document, what each region has by itself and may hold, and every way
in which more can be admitted, with its formula and what that comes to: 0 where nothing is, "none" where there is no
bound. Where the regions differ, AT MOST is that of the region, and of the key, for which it is most; -o json has all
regions. Each bound is for one mishap: two at once may add up. A node notes
every bucket that it uses, up to remember of its node file.

A limit with charge: always is charged whole for a cost that is known afterwards, and a region owes what did not fit.
How much that is depends on what is in flight, so it has no bound from the document alone: give --in-flight and --cost.
KEEPS is what each region does not lend: it admits that although the limit is used up elsewhere.

  store-lost     the Redis of a region lost its data: FLUSHALL, or a restart without it
  stale-replica  a replica was promoted and the old primary of the region still serves some of its nodes,
                 which do not reach the others' peer ports
  second-store   a region's nodes decide with two Redis, and hear each other neither at their peer ports nor, but for a
                 minute an hour, by gossip
  live-copy      an older copy of a Redis was put back while it ran, as from a snapshot of its machine
  key-deleted    one bucket was deleted (DEL) or evicted, or ended while its Redis' clock was ahead
  local          nodes cannot reach the Redis of their region and decide alone, while others still reach it
  late-envoy     Envoys take what they are assigned later than a second after it was sent, as after a pause; or all
                 reports of a stream come as late, from the first on
  clocks-apart   the clocks of two regions' Redis differ: labelled windows stay exact, real time does not
  clock-back     the clock of a Redis steps back; or it is ahead by d when the Redis loses its data, and it is right
                 again when a node opens it that had not heard of that, nor any node that it reaches; or
                 the operator takes its time back by d (forget_store_time)
  reset          quotad reset was called
  policy-change  regions worked under different documents for a while
  fenced-alive   a region was fenced by an operator's word and runs all the same; take the values before the fence

  L limit  W window  F fixed split  l lending_limit  B a region's part of the burst  S the rights it holds now
  S_max    the most it may hold: F and what others may lend it within its borrowing_limit, never above L
  B_max    B and the most burst that others may lend it, of a token_bucket alone
  v        local_reserve: floor(v F) is RESERVE, kept out of the store; in formulas F and B are what is left in it
  TTL, M   ttl and max_burst of a limit with assign; in formulas L is less no_assignment, and B less what Envoys hold
  n        nodes of a region, by configuration (--nodes)  k of them are cut off
  chunk    the most that a node asks for beforehand, with consistency: prefetch; floor(S_max / (4 n)), none below 8
  r        units that a region admits in a second (--rate)
  N, C     uses of one key that are in flight in one region at a time (--in-flight); the most that one costs (--cost)
  max_debt the most that a region owes of a token_bucket with charge: always
  d        how far clocks are apart (--clock)
  lag      units admitted or lent that the replica had not heard of (--lag)`

// assumptions are the values that bounds depend on and that a document does not contain.
type assumptions struct {
	nodes, rate, lag int64
	clock            time.Duration
	// inFlight and cost are given together; 0: they are not.
	inFlight, cost int64
}

func (a *assumptions) flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&a.nodes, "nodes", 1,
		"how many nodes each region has, as in their node files")
	cmd.Flags().Int64Var(&a.rate, "rate", 0,
		"`units` a second that one region admits of one key (default: the limit's own rate)")
	cmd.Flags().DurationVar(&a.clock, "clock", 5*time.Second,
		"how far the clocks of two regions are apart")
	cmd.Flags().Int64Var(&a.lag, "lag", 0, "`units` that a promoted replica had not heard of")
	cmd.Flags().Int64Var(&a.inFlight, "in-flight", 0,
		"how many `uses` of one key are in flight in one region at a time, for limits with charge: always")
	cmd.Flags().Int64Var(&a.cost, "cost", 0, "the most `units` that one of these uses costs")
	for _, name := range []string{"limit", "nodes", "rate", "clock", "lag", "in-flight", "cost"} {
		// This fails only for an unknown flag.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// maxApart is the largest difference of clocks for which bounds are computed.
const maxApart = 366 * 24 * time.Hour

// ranged is a number that a flag gives, and the range that it must be in.
type ranged struct {
	flag              string
	value, least, top int64
}

// check checks the flags. given reports whether a flag was given.
func (a *assumptions) check(given func(flag string) bool) error {
	numbers := []ranged{
		{"nodes", a.nodes, 1, region.MaxNodes},
		{"rate", a.rate, 0, policy.MaxLimit},
		{"lag", a.lag, 0, policy.MaxLimit},
	}
	if given("in-flight") != given("cost") {
		return exit.Usage(errors.New("--in-flight and --cost belong together: give both, or neither"))
	}
	if given("cost") {
		numbers = append(numbers, ranged{"in-flight", a.inFlight, 1, policy.MaxLimit},
			ranged{"cost", a.cost, 1, policy.MaxLimit})
	}
	for _, v := range numbers {
		if v.value < v.least || v.value > v.top {
			return exit.Usage(fmt.Errorf(
				"--%s %d is out of range; give a whole number from %d to %d", v.flag, v.value,
				v.least, v.top))
		}
	}
	if a.clock < 0 || a.clock > maxApart {
		return exit.Usage(fmt.Errorf("--clock %s is out of range; give a duration from 0s to %s",
			a.clock, show.Span(maxApart)))
	}
	return nil
}

// named returns the limits with a name, or all limits if name is empty.
func named(d *policy.Document, file, name string) ([]*policy.Limit, error) {
	var limits []*policy.Limit
	var names []string
	for i := range d.Limits {
		l := &d.Limits[i]
		if name == "" || l.Name == name {
			limits = append(limits, l)
		}
		if !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	if len(limits) == 0 {
		return nil, exit.Usage(fmt.Errorf("--limit: %s has no limit %q; choose one of %s", file,
			name, strings.Join(names, ", ")))
	}
	return limits, nil
}

// bounds is the output: what a document promises, as JSON or for people.
type bounds struct {
	Version int64  `json:"version"`
	Epoch   string `json:"epoch"`
	Nodes   int64  `json:"nodes"`
	Clock   string `json:"clock"`
	Rate    int64  `json:"rate,omitempty"` // 0: each limit has its own
	Lag     int64  `json:"lag"`
	// InFlight and Cost are 0 if they are not given.
	InFlight int64          `json:"in_flight,omitempty"`
	Cost     int64          `json:"cost,omitempty"`
	Limits   []boundedLimit `json:"limits"`
	regions  []string
}

type boundedLimit struct {
	listedLimit
	Ceiling        string                `json:"ceiling"`
	OnStoreFailure policy.OnStoreFailure `json:"on_store_failure"`
	Holdings       map[string]holding    `json:"holdings"` // by region
	Excess         []excess              `json:"excess"`
	// Debt is what one region owes at most, and AboveCeiling what is charged above the ceiling in each
	// region each time it runs out. Only limits that are charged always have them.
	Debt         *owing `json:"debt,omitempty"`
	AboveCeiling *owing `json:"above_ceiling,omitempty"`
	holdings     []allocator.Holding
	keeps        bool // each region keeps a part that it does not lend, and that is to be said
}

// owing is a bound of a limit that is charged always.
type owing struct {
	AtMost  *quantity.Units `json:"at_most"` // null: it depends on --in-flight and --cost
	Formula string          `json:"formula"`
}

// holding is the most that a region may hold of one key, in units.
type holding struct {
	Reserve   quantity.Units `json:"reserve,omitempty"`
	Lends     quantity.Units `json:"lends"`
	Rights    quantity.Units `json:"s_max"`
	MostBurst quantity.Units `json:"b_max,omitempty"`
	Chunks    quantity.Units `json:"chunks,omitempty"` // of all its nodes, with consistency: prefetch
	// Keeps is what it does not lend and so admits although the limit is used up elsewhere. Only limits
	// that are charged always have it.
	Keeps quantity.Units `json:"keeps,omitempty"`
}

type excess struct {
	Cause   string                    `json:"cause"`
	When    string                    `json:"when"`
	Formula string                    `json:"formula"`
	AtMost  *quantity.Units           `json:"at_most"` // null: unbounded
	Regions map[string]quantity.Units `json:"regions,omitempty"`
}

func bound(d *policy.Document, limits []*policy.Limit, a assumptions) bounds {
	b := bounds{Version: d.Version, Epoch: d.Epoch().String(), Nodes: a.nodes,
		Clock: show.Span(a.clock), Rate: a.rate, Lag: a.lag, InFlight: a.inFlight, Cost: a.cost,
		regions: d.RegionNames()}
	for _, l := range limits {
		e := exposure(l, len(d.Regions), a)
		limit := boundedLimit{listedLimit: listed(l, b.regions), Ceiling: ceiling(l),
			OnStoreFailure: l.OnStoreFailure,
			Holdings:       make(map[string]holding, len(b.regions)), holdings: e.Holdings()}
		if l.Charge == policy.ChargeAlways {
			limit.Debt, limit.AboveCeiling = owings(e, a)
			limit.keeps = len(b.regions) > 1 && e.Lending < allocator.PPM
		}
		for i, h := range limit.holdings {
			of := holding{Reserve: h.Reserve, Lends: h.Lends,
				Rights: h.Rights, MostBurst: h.MaxBurst, Chunks: chunks(l, h, a.nodes)}
			if limit.keeps {
				of.Keeps = h.Entitlement - h.Lends
			}
			limit.Holdings[b.regions[i]] = of
		}
		for _, of := range allocator.Bounds(e) {
			limit.Excess = append(limit.Excess, excessOf(of, b.regions))
		}
		b.Limits = append(b.Limits, limit)
	}
	return b
}

// owings returns the bounds of a limit that is charged always.
func owings(e allocator.Exposure, a assumptions) (debt, above *owing) {
	debt, above = &owing{Formula: "N x C"}, &owing{Formula: "N x C"}
	switch {
	case a.inFlight > 0:
		owed, charged := e.Owes(a.inFlight, quantity.Units(a.cost))
		debt.AtMost, above.AtMost = &owed, &charged
		if e.MaxDebt > 0 {
			debt.Formula = "min(N x C, max_debt)"
		}
	case e.MaxDebt > 0:
		debt.AtMost, debt.Formula = &e.MaxDebt, "max_debt"
	}
	return debt, above
}

// chunks returns the most that the nodes of a region ask for beforehand at a time.
func chunks(l *policy.Limit, h allocator.Holding, nodes int64) quantity.Units {
	chunk := held.Largest(h.Rights, int(nodes))
	if l.Consistency != policy.Prefetch || chunk < held.Smallest {
		return 0
	}
	return quantity.Units(nodes) * chunk
}

func excessOf(b allocator.Bound, regions []string) excess {
	e := excess{Cause: b.Cause, When: b.When, Formula: b.Formula}
	if b.None {
		return e
	}
	e.AtMost = &b.Most
	for i, units := range b.Regions {
		if e.Regions == nil {
			e.Regions = make(map[string]quantity.Units, len(regions))
		}
		e.Regions[regions[i]] = units
	}
	return e
}

// exposure converts a limit for package allocator.
func exposure(l *policy.Limit, regions int, a assumptions) allocator.Exposure {
	limit, burst := l.Shared()
	e := allocator.Exposure{Kind: l.Algorithm, Limit: limit, Window: l.ShortestWindow().Microseconds(),
		Cell:      l.Cell().Microseconds(),
		Recovered: algorithms.Recovers(l.Algorithm, l.Window.Microseconds()),
		Reserve:   quantity.PPM(l.Reserve()), MaxDebt: l.MaxDebt,
		Nodes: a.nodes, Rate: quantity.Units(a.rate),
		Lag: quantity.Units(a.lag), Clock: a.clock.Microseconds(),
		ClockMargin: algorithms.ClockMargin}
	if l.Assign != nil {
		e.TTL, e.EnvoyBurst = l.Assign.TTL.Microseconds(), l.Assign.MaxBurst
	}
	e.Lending, e.Borrowing = l.Traded()
	if l.Period != "" {
		e.Cell = e.Window
	}
	switch l.OnStoreFailure {
	case policy.StoreFailureAllow:
		e.OnFailure = allocator.FailAllow
	case policy.StoreFailureDeny:
		e.OnFailure = allocator.FailDeny
	}
	for rotation := range regions {
		e.Splits = append(e.Splits, allocator.SplitOf(limit, burst, l.Weights, uint64(rotation),
			l.Home()))
	}
	return e
}
