package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes, the same for every command.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2 // usage, or an invalid configuration or policy
	exitBroken      = 3 // the promise was broken
	exitDenied      = 4
	exitUnreachable = 5
)

// codedError is an error with the exit code it calls for. A silent one has said all there is to say already.
type codedError struct {
	code   int
	silent bool
	err    error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func usageError(err error) error       { return &codedError{code: exitUsage, err: err} }
func unreachableError(err error) error { return &codedError{code: exitUnreachable, err: err} }

// silently ends with a code and without a message.
func silently(code int) error {
	return &codedError{code: code, silent: true, err: fmt.Errorf("exit code %d", code)}
}

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var coded *codedError
	if !errors.As(err, &coded) {
		coded = &codedError{code: exitError, err: err}
	}
	if !coded.silent {
		fmt.Fprintf(stderr, "quotad: %s\n", visible(err.Error()))
	}
	return coded.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "quotad",
		Short: "One limit for all regions: a multi-region global quota coordinator",
		Long: `quotad enforces limits that hold over all regions of an API, such as "account 42 may make 1,000 requests a
minute, worldwide". Each region decides with its own Redis; shares of a limit move to where the demand is; a region
cut off falls to its fixed split. The sum of what all regions admit never exceeds the limit.

Exit codes: 0 ok, 1 error, 2 usage or invalid configuration, 3 promise broken, 4 denied, 5 unreachable.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          aSubcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.HasAvailableSubCommands() && cmd.Flags().NArg() > 0 {
			return aSubcommand(cmd, cmd.Flags().Args()) // the flag is unknown because its command is
		}
		return usageError(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	})
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp) // what takes a file says so
	root.AddCommand(serveCommand(), checkCommand(), refundCommand(), statusCommand(), bucketsCommand(), resetCommand(),
		cutCommand(), certsCommand(), gossipKeyCommand(), configCommand(), limitsCommand(), demoCommand(), simulateCommand(), chaosCommand(), completionCommand(), manCommand(), versionCommand())
	return root
}

// aSubcommand refuses arguments of a command that only has subcommands: what stands there is the name of none.
func aSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		meant = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	return usageError(fmt.Errorf("unknown command %q%s; see %s --help", args[0], meant, cmd.CommandPath()))
}
