package proof

import (
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/chaos/real/scenarios"
	"github.com/quotad/quotad/cmd/quotad/command"
)

func chaosCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "chaos",
		Short: "Rehearse faults: partitions, crashes, lost data",
		Long: `chaos plays scenarios: whole regions under load, with the network, nodes, Redis or disks failing at stated times. Every
request and answer is recorded and judged from outside, against what the scenario expects.`,
	}, chaosRunCommand())
}

// completeScenario offers the scenarios in this binary, and files.
func completeScenario(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	files, err := fs.Glob(scenarios.Files, "*.yaml")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]cobra.Completion, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	return names, cobra.ShellCompDirectiveDefault
}
