package proof

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/proof/rehearsal"
)

func chaosRunCommand() *cobra.Command {
	var r rehearsal.Rehearsal
	cmd := &cobra.Command{
		Use:   "run [FILE]",
		Short: "Play a scenario with real processes, and judge what came of it, or list the scenarios",
		Long: `run starts the regions of a scenario on this machine, each with a redis-server and its nodes, offers load to them, does
what the scenario says at its times, and judges every answer. FILE is a scenario of your own, or the name of one of those
that quotad brings along. Without FILE, run lists these: the rows of the project's fault matrix that each covers, how long
it takes beside starting the regions, and what it is about.

All listens on loopback, all between nodes goes through a proxy of this process, and all ends with it, also at an interrupt
(kill -9 leaves a folder quotad-chaos-* where TMPDIR says, and in it a failing disk mounted). It needs a redis-server, Linux
or loopback aliases, and the time that the list shows. A step that is not possible here, such as a failing disk without
root, is refused before anything starts.

With --against it is played on a deployment that runs already, such as your staging environment, whose nodes are named in a
file: deploy/multi-region/nodes.yaml is an example. Load goes to their HTTP API, and cuts are asked for at their admin
listeners: each node must have been started with chaos: true, and refuses else. Where nodes ask who calls, the file names
the token (token_file) or the certificate (cert, key) of a caller with the roles check and operate, and with https:// before
their addresses the authority of their certificates (ca). Only cut, heal and flap are possible; what
needs the processes is refused before anything is asked of them, as is a scenario whose regions, limits or weights are not
the deployment's. The load is real: it spends of the keys that the scenario names. Cuts are healed at the end, and end by
themselves if this process is killed.

Exit codes: 0 all that the scenario expects was met, 1 it could not be played, 2 usage or an invalid scenario, 3 something
was not met.`,
		Example: `  quotad chaos run
  quotad chaos run full-split --report split.html
  quotad chaos run staging-split.yaml --against nodes.yaml`,
		Args:              oneOrToList,
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return listScenarios(cmd.OutOrStdout(), r.Output)
			}
			if r.Scenario, err = rehearsal.Load(args[0]); err != nil {
				return err
			}
			r.Command = fmt.Sprintf("quotad chaos run %s --seed %d", args[0], r.Seed)
			if r.Quotad != "" {
				r.Command += " --quotad " + r.Quotad
			}
			if r.Against != "" {
				r.Command += " --against " + r.Against
			}
			return r.PlayAndJudge(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Quotad, "quotad", "", "`path` of the binary under test (default: this one)")
	f.Uint64Var(&r.Seed, "seed", 1, "seed of the load's jitter and of what the network loses")
	f.StringVar(&r.Against, "against", "",
		"play it on the deployment whose nodes this `file` names, and start nothing")
	command.CompleteYAMLFlag(cmd, "against")
	f.StringVar(&r.ReportTo, "report", "", "write a page about the run to this `file`, HTML")
	command.OutputFlag(cmd, &r.Output)
	return cmd
}

// oneOrToList requires a scenario, or nothing that one is played with: who names none by mistake is
// not to believe that it was played.
func oneOrToList(cmd *cobra.Command, args []string) error {
	given := 0
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "output" {
			given++
		}
	})
	if len(args) == 0 && given == 0 {
		return nil
	}
	return command.OneArgument("scenario", "full-split; without a name and flags it lists some")(cmd, args)
}
