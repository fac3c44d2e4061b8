package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/build"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/show"
)

func versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inWords := func(w io.Writer) error {
				_, err := fmt.Fprintln(w, build.This())
				return err
			}
			return show.Result(cmd.OutOrStdout(), output, build.This(), inWords)
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}
