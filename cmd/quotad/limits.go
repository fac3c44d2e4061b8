package main

import (
	"github.com/spf13/cobra"
)

func limitsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "limits",
		Short: "Check, show, compare, test, apply and import limits documents",
	}, limitsValidateCommand(), limitsListCommand(), limitsBoundCommand(), limitsDiffCommand(),
		limitsApplyCommand(), limitsStatusCommand(), limitsImportCommand(), limitsTestCommand())
}

// yamlFiles are the endings of files that completion offers.
var yamlFiles = []string{"yaml", "yml"}

func completeYAML(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return yamlFiles, cobra.ShellCompDirectiveFilterFileExt
}
