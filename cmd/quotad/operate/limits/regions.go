package limits

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/policy"
)

func fenceCommand() *cobra.Command {
	return regionCommand(&cobra.Command{
		Use:   "fence NAME --yes",
		Short: "Declare that a region is stopped, so that the others take over its part",
		Long: `fence raises the version of the limits document that is open, adds the region to its list "fenced" and applies it. The
region then gets nothing of any limit, and no other waits for it to acknowledge a document.

It is your word that all nodes of the region are stopped, and stay so until they reach another region. If one runs all the
same, cut off from all others, it goes on admitting the region's old part, on top of what the others admit: see the line
fenced-alive of quotad limits bound. A node that reaches another region serves nothing, whatever document it has.

To undo it, use quotad regions return. A document of a higher version without the name and without "returned" is taken
nowhere. Give the nodes' files the new document, too: --write puts it into a file.

Exit codes: 0 all other regions acknowledged, 1 not all did, 2 bad usage, no such region or no --yes, 5 no node answers.`,
		Example: "  quotad regions fence ap-south --yes --write limits.yaml",
	}, "the region is stopped", fence, func(region string) error {
		return fmt.Errorf("nothing was changed: fence is your word that all nodes of %s are stopped; one that runs all "+
			"the same, cut off, admits the region's old part on top of what the others admit; give --yes if they are stopped", region)
	})
}

func returnCommand() *cobra.Command {
	return regionCommand(&cobra.Command{
		Use:   "return NAME --yes",
		Short: "Take back that a region is fenced",
		Long: `return raises the version of the limits document that is open, takes the region from its list "fenced", counts in
"returned" that it has returned once more, and applies it. Later documents keep the count. So a node of the region that
never heard of the fence knows that its old document is over.

The region serves nothing until all regions have acknowledged the document and what the others used of its part weighs no
more: of a fixed window, when that is over (in its last minute, the next one). Start its nodes before or after.

Exit codes: 0 all regions acknowledged, 1 not all did, 2 bad usage, the region is not fenced or no --yes, 5 no node answers.`,
		Example: "  quotad regions return ap-south --yes --write limits.yaml",
	}, "the region is to serve again", unfence, func(region string) error {
		return fmt.Errorf("nothing was changed: give --yes if %s is to have its part again", region)
	})
}

// regionCommand completes a command that changes what the open document says of a region. asks is
// the error without --yes, of which says tells what it means.
func regionCommand(cmd *cobra.Command, says string, change func(*policy.Document, string) (*policy.Document, error),
	asks func(region string) error) *cobra.Command {
	var a applying
	var yes bool
	var write string
	cmd.Args = command.OneArgument("region", "ap-south")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		before, err := a.newest(cmd.Context())
		if err != nil {
			return err
		}
		d, err := change(before, args[0])
		if err != nil {
			return exit.Usage(err)
		}
		if !yes {
			return exit.Usage(asks(args[0]))
		}
		if err := a.apply(cmd, before, d, "the document that changes what is said of "+args[0]); err != nil {
			return err
		}
		return a.keep(cmd, d, write)
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, says)
	cmd.Flags().StringVar(&write, "write", "", "`file` to write the document to that was applied")
	return cmd
}

// keep writes a document to a file, or reminds of the nodes' files.
func (a *applying) keep(cmd *cobra.Command, d *policy.Document, path string) error {
	if path == "" {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "the nodes' files are older than version %d now: write %s into them, too\n",
			d.Version, strings.Join(regionLines(d.Fenced, d.Returned), " and "))
		return err
	}
	if err := os.WriteFile(path, d.Source(), 0o644); err != nil {
		return fmt.Errorf("the document is applied, and cannot be written: %w; choose another file", err)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: give it to all nodes\n", path)
	return err
}
