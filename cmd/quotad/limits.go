package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

func limitsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Check and show a limits document",
		Args:  aSubcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(limitsValidateCommand(), limitsListCommand(), limitsBoundCommand())
	return cmd
}

// yamlFiles are the endings of files that are completed.
var yamlFiles = []string{"yaml", "yml"}

func completeYAML(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return yamlFiles, cobra.ShellCompDirectiveFilterFileExt
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usage(fmt.Errorf("name one limits document, as in %s limits.yaml", cmd.CommandPath()))
	}
	return nil
}

// loadPolicy reads a limits document; the error shows every problem, one a line, and calls for exit code 2.
func loadPolicy(path string) (*policy.Document, error) {
	d, err := policy.Load(path)
	var problems strictyaml.Errors
	if errors.As(err, &problems) {
		return nil, exit.Usage(fmt.Errorf("%s is not valid: mend %s and try again\n%w", path, show.Counted(len(problems), "problem"), err))
	}
	if err != nil {
		return nil, exit.Usage(err)
	}
	return d, nil
}
