package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
)

// outputFlag adds -o table|json to a command, checked before it runs.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", // fails for a flag that is not there
		cobra.FixedCompletions([]cobra.Completion{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "table" && *output != "json" {
			return exit.Usage(fmt.Errorf("-o %q: choose table or json", *output))
		}
		return nil
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usage(fmt.Errorf("unexpected argument %q; see %s --help", args[0], cmd.CommandPath()))
	}
	return nil
}
