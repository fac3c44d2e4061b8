package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
)

// outputFlag adds -o table|json to a command. The value is checked before the command runs.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", // fails only for an unknown flag
		cobra.FixedCompletions([]cobra.Completion{"table", "json"},
			cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "table" && *output != "json" {
			return exit.Usage(fmt.Errorf("-o %q: choose table or json", *output))
		}
		return nil
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usage(fmt.Errorf("unexpected argument %q; see %s --help", args[0],
			cmd.CommandPath()))
	}
	return nil
}

// one requires exactly one argument. The error shows an example.
func one(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return exit.Usage(fmt.Errorf("name one %s, as in %s %s", what, cmd.CommandPath(),
				example))
		}
		return nil
	}
}

// group returns a command that only has subcommands.
func group(cmd *cobra.Command, all ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.SuggestionsMinimumDistance = aSubcommand, 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(all...)
	return cmd
}

// aSubcommand refuses any argument of a command that only has subcommands, as an unknown command.
func aSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		meant = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	return exit.Usage(fmt.Errorf("unknown command %q%s; see %s --help", args[0], meant,
		cmd.CommandPath()))
}
