package proof

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/proof/simulation"
	"github.com/quotad/quotad/cmd/quotad/show"
)

func demoCommand() *cobra.Command {
	story := world.Story{RoundTrip: simulation.RoundTrip, Log: slog.New(slog.DiscardHandler)}
	var redis, output string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play three regions, a partition and a heal in this process",
		Long: `demo starts three regions (us-east, eu-west, ap-south; weights 40/40/20) in this process, each with a Redis, a node,
gossip and a journal of its own, 80 ms round trip between them, and one limit of 1,000 requests a second. It plays a
steady load, a skew to us-east, a partition that cuts us-east off, a flood on all sides and a heal, and has every
decision judged from outside.

Exit code 3: more was admitted than a limit or a fixed split allows. Exit code 6: the ceiling held, but the cut region did
not spend its fixed split, or shares did not come back, as on a machine that is too busy; what it lacked is said.`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case story.Duration < world.Shortest:
				return exit.Usage(fmt.Errorf(
					"--duration %s is too short: at least %s are needed for the cut to show",
					story.Duration, world.Shortest))
			case story.Scale < 0.01 || story.Scale > 5:
				return exit.Usage(fmt.Errorf("--scale %g is out of range: 0.01 to 5", story.Scale))
			case redis != "embedded" && redis != "process":
				return exit.Usage(fmt.Errorf("--redis %q: choose embedded or process", redis))
			case !slices.Contains(algorithms.Kinds, algorithms.Kind(story.Algorithm)):
				return exit.Usage(fmt.Errorf("--algorithm %q: choose %s", story.Algorithm,
					show.Listed(algorithms.Kinds)))
			}
			story.Redis = servers.StartEmbedded
			if redis == "process" {
				story.Redis = servers.StartProcess
			}
			return playDemo(cmd, story, redis, output)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&story.Duration, "duration", time.Minute,
		"how long the story takes, at least 20s; phases are in proportion")
	f.Uint64Var(&story.Seed, "seed", 1, "seed of the load's jitter")
	f.Float64Var(&story.Scale, "scale", 1, "multiplies limit and demand, 0.01 to 5")
	f.StringVar(&redis, "redis", "embedded", "embedded, or process: one redis-server per region")
	f.StringVar(&story.Algorithm, "algorithm", string(algorithms.FixedWindow),
		"algorithm of the limit: "+show.Listed(algorithms.Kinds))
	command.OutputFlag(cmd, &output)
	return cmd
}

func playDemo(cmd *cobra.Command, story world.Story, redis, output string) error {
	out := cmd.OutOrStdout()
	screen := newScreen(out, story)
	defer screen.drawn.Leave()
	if output == "table" {
		screen.begin(redis)
		story.Progress = screen.show
	}
	report, err := world.Play(cmd.Context(), story)
	if err != nil {
		return err
	}
	return tellDemo(out, screen, report, output)
}

// tellDemo prints the outcome of a demo. The error carries the exit code if the promise was broken.
func tellDemo(out io.Writer, screen *screen, report world.Report, output string) error {
	if output == "json" {
		if err := show.JSON(out, report); err != nil {
			return err
		}
	} else {
		screen.end(report)
	}
	switch {
	case len(report.Failures) > 0:
		return exit.Silently(exit.Broken)
	case !report.OK:
		return exit.Silently(exit.NotShown)
	}
	return nil
}
