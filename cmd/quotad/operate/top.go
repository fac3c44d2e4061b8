package operate

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/draw"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/operate/top"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func topCommand() *cobra.Command {
	var t topOptions
	cmd := &cobra.Command{
		Use:   "top [NAME=PREFIX]...",
		Short: "Show the limits and buckets with the most units, worldwide and live, or find buckets",
		Long: `top asks a node again and again for what all nodes of all regions decide. It shows, for each limit, units admitted
and denied a second, and for the buckets with the most units what was admitted and denied over the last half minute to
minute, and what counts as used now: worldwide, and in each region of what that region holds.

Nodes count the hottest buckets in a fixed amount of memory, so the units of a bucket may be a little more than shown.
Without a terminal, and with --once, top prints one report and ends.

With NAME=PREFIX, --limit or --domain it lists instead the buckets that the node has in memory and that match, with few
units or many: those that it was asked about lately, some 32,768 at most, whose key has a value of that name which begins
so. It does not search the region's store.

Exit codes: 0 shown, 5 no node answers, 2 bad usage.`,
		Example: `  quotad top
  quotad top --limit account-minute account=4`,
		Args: cobra.ArbitraryArgs,
		RunE: t.run,
	}
	t.node.OperatorFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&t.once, "once", false, "print one report and end")
	f.DurationVar(&t.every, "every", time.Second, "time between reports, and that a report is about, 1s to 1m")
	f.IntVar(&t.buckets, "buckets", 10,
		"buckets to show: so many with the most units, and with the most units denied, 0 to 100; to list at most 1000 (default 100)")
	f.StringVar(&t.wanted.limit, "limit", "", "list buckets of this limit alone")
	f.StringVar(&t.wanted.domain, "domain", "", "list buckets of this domain alone")
	command.OutputFlag(cmd, &t.output)
	return cmd
}

// usuallyFound is how many buckets top lists unless it is told.
const usuallyFound = 100

// topOptions holds the options of top.
type topOptions struct {
	node    remote.Node
	output  string
	once    bool
	every   time.Duration
	buckets int
	wanted  wantedBuckets
}

func (t *topOptions) run(cmd *cobra.Command, args []string) error {
	find := len(args) > 0 || t.wanted != (wantedBuckets{})
	if find && !cmd.Flags().Changed("buckets") {
		t.buckets = usuallyFound
	}
	switch {
	case find:
		return t.wanted.list(cmd, &t.node, args, t.buckets, t.output)
	case t.every < time.Second || t.every > time.Minute:
		return exit.Usage(fmt.Errorf("--every %s: choose 1s to 1m", t.every))
	case t.buckets < 0 || t.buckets > 100:
		return exit.Usage(fmt.Errorf("--buckets %d: choose 0 to 100", t.buckets))
	}
	fetch := func() (*quotadv1.OverviewResponse, error) {
		o, _, err := fetchOverview(cmd, &t.node, t.buckets)
		return o.OverviewResponse, err
	}
	if !t.once && t.output == "table" && show.IsTerminal(cmd.OutOrStdout()) {
		return top.Watch(cmd.Context(), &draw.Screen{Out: cmd.OutOrStdout()}, t.every, fetch)
	}
	return t.report(cmd, fetch)
}

// report prints what happened in one interval.
func (t *topOptions) report(cmd *cobra.Command, fetch top.Fetch) error {
	before, err := fetch()
	if err != nil {
		return err
	}
	after := before
	for !after.At.AsTime().After(before.At.AsTime()) { // an overview is told again for a second
		select {
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		case <-time.After(t.every):
		}
		if after, err = fetch(); err != nil {
			return err
		}
	}
	r := top.Of(before, after)
	return show.Result(cmd.OutOrStdout(), t.output, r, r.Print)
}
