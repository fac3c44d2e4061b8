// Package command has what the definitions of all commands share: their arguments, flags and
// completion, and what is said of a command or flag that does not exist.
package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/policy/strictyaml"
)

// NoArguments refuses any argument.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usage(fmt.Errorf("unexpected argument %q; see %s --help", args[0],
			cmd.CommandPath()))
	}
	return nil
}

// OneArgument requires exactly one argument. The error shows an example.
func OneArgument(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return exit.Usage(fmt.Errorf("name one %s, as in %s %s", what, cmd.CommandPath(),
				example))
		}
		return nil
	}
}

// Group returns a command that only has subcommands.
func Group(cmd *cobra.Command, all ...*cobra.Command) *cobra.Command {
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

// OutputFlag adds -o table|json to a command. The value is checked before the command runs.
func OutputFlag(cmd *cobra.Command, output *string) {
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

// FlagError returns the error of a command's flags, with those that were probably meant.
func FlagError(cmd *cobra.Command, err error) error {
	if cmd.HasAvailableSubCommands() && cmd.Flags().NArg() > 0 {
		// The flag is unknown because its command is.
		return aSubcommand(cmd, cmd.Flags().Args())
	}
	return exit.Usage(fmt.Errorf("%w%s; see %s --help", err, meantFlag(cmd, err), cmd.CommandPath()))
}

// maxMeantFlags bounds how many flags are named for one that is unknown.
const maxMeantFlags = 4

// meantFlag names the flags of a command that were probably meant by one that it does not have:
// those that have one word more, such as --redis-url for --redis, or the one that is spelled alike.
func meantFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var known, longer []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		known = append(known, f.Name)
		rest, found := strings.CutPrefix(f.Name, unknown.GetSpecifiedName()+"-")
		if found && !strings.Contains(rest, "-") && len(longer) < maxMeantFlags {
			longer = append(longer, "--"+f.Name)
		}
	})
	if len(longer) > 0 {
		return "; did you mean " + strings.Join(longer, " or ") + "?"
	}
	meant, found := strings.CutPrefix(strictyaml.DidYouMean(unknown.GetSpecifiedName(), known), "did you mean ")
	if !found {
		return ""
	}
	return "; did you mean --" + meant
}

// yamlFiles are the endings of files that completion offers.
var yamlFiles = []string{"yaml", "yml"}

// CompleteYAML offers YAML files.
func CompleteYAML(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return yamlFiles, cobra.ShellCompDirectiveFilterFileExt
}

// CompleteYAMLFlag offers YAML files for a flag of a command.
func CompleteYAMLFlag(cmd *cobra.Command, flag string) {
	_ = cmd.MarkFlagFilename(flag, yamlFiles...) // fails only for an unknown flag
}

// CompleteFolders offers folders.
func CompleteFolders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
