package operate

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
)

func resetCommand() *cobra.Command {
	var node remote.Node
	var bucket bucketName
	var yes bool
	var output string
	cmd := &cobra.Command{
		Use:   "reset LIMIT --domain DOMAIN [NAME=VALUE]... --yes",
		Short: "Forget the use of one bucket in the region of a node, which breaks its limit",
		Long: `reset clears what counts as used of one bucket, which is a limit applied to the key of some descriptors, in the
region of a node. What the region has lent and borrowed stays as it is, and so do the other regions.

It breaks the limit on purpose: what is admitted after it comes on top of what was admitted before, so that all regions
together may exceed the limit by what was cleared, in the window in which it is called. It does nothing without --yes.

Exit codes: 0 cleared, 1 no such bucket, 5 no node answers, 2 bad usage or no --yes.`,
		Example: "  quotad reset account-minute --domain api account=42 plan=free --yes",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bucket.read(cmd, args); err != nil {
				return err
			}
			if !yes {
				return exit.Usage(fmt.Errorf(
					"nothing was reset: reset breaks limit %s on purpose, for what is admitted after it comes on top of what was "+
						"admitted before, in this region's window; look with quotad explain --ledger what would be forgotten, and give --yes if that is meant", bucket.Limit))
			}
			answer := node.Post(cmd.Context(), "/v1/reset", bucket)
			var done struct {
				Cleared *int64 `json:"cleared"`
			}
			if err := answer.Into(&done, func() bool { return done.Cleared != nil }); err != nil {
				return refusedBucket(answer, err)
			}
			return answer.Show(cmd.OutOrStdout(), output, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "cleared %s of %s, in this region alone\n",
					show.Counted(int(*done.Cleared), "unit"), bucket.Limit)
				return err
			})
		},
	}
	node.OperatorFlags(cmd)
	bucket.flags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "break the limit for this window")
	command.OutputFlag(cmd, &output)
	return cmd
}
