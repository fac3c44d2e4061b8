package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate"
	"github.com/quotad/quotad/cmd/quotad/proof"
	"github.com/quotad/quotad/cmd/quotad/serve"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout)
	root.SetArgs(args)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code, tell := exit.Of(err)
	if tell {
		fmt.Fprintf(stderr, "quotad: %s\n", show.Visible(err.Error()))
	}
	return code
}

// newRoot returns all commands, which print to out.
func newRoot(out io.Writer) *cobra.Command {
	root := command.Group(&cobra.Command{
		Use:   "quotad",
		Short: "One limit for all regions: a multi-region global quota coordinator",
		Long: `quotad enforces limits that hold over all regions of an API, such as "account 42 may make 1,000 requests a
minute, worldwide". Each region decides with its own Redis; shares of a limit move to where the demand is; a region
cut off falls to its fixed split. The sum of what all regions admit never exceeds the limit.

Exit codes: 0 ok, 1 error, 2 usage or invalid configuration, 3 promise broken, 4 denied, 5 unreachable, 6 not shown (demo).`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}, slices.Concat(serve.Commands(), operate.Commands(), proof.Commands(), []*cobra.Command{versionCommand()})...)
	root.SetOut(out)
	addMan(root)
	forward(root)
	root.SetFlagErrorFunc(command.FlagError)
	// Commands that take a file set another directive.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	addCompletion(root)
	return root
}

// addCompletion adds cobra's command of scripts for shells. It refuses what it cannot understand as
// all commands do.
func addCompletion(root *cobra.Command) {
	root.CompletionOptions.DisableNoDescFlag = true
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			for _, shell := range command.Group(cmd).Commands() {
				shell.Args = command.NoArguments
			}
		}
	}
}
