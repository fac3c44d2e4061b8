package operate

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func recoverCommand() *cobra.Command {
	var node remote.Node
	var yes bool
	var output string
	cmd := &cobra.Command{
		Use:   "recover REGION --yes",
		Short: "End the wait for what nobody knows after a region's Redis lost its data",
		Long: `recover is your word about all losses of a region's Redis so far: what was used and lent, and nobody can tell of any
more, counts as nothing. Keys of windows over a minute that are answered "recovering", since a node or a region that knows
their use does not answer, are decided again. Nodes and regions that do answer are asked first, as always.

It breaks limits on purpose: of each key that was used before the loss, the region may admit once more what nobody knows
of, in the window of the loss: at most what it may hold of the key, S_max of quotad limits bound.
Without --yes it says which limits wait, and does nothing. Windows up to a minute, and buckets, open by themselves.

Bring a missing node back with its journal instead, if that is possible: then nothing is exceeded.

Exit codes: 0 done, 5 no node answers, 2 bad usage, a node of another region or no --yes.`,
		Example: "  quotad recover us-east --yes",
		Args:    command.OneArgument("region", "us-east"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return whatRecovers(cmd, &node, args[0])
			}
			answer := node.Post(cmd.Context(), "/v1/recover", map[string]string{"region": args[0]})
			var done quotadv1.RecoverResponse
			if err := answer.Message(&done, "limits"); err != nil {
				return err
			}
			return answer.Show(cmd.OutOrStdout(), output, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s waits no longer for what nobody knows of its losses until now\n%s",
					show.Name(done.Region), recovering(done.Limits))
				return err
			})
		},
	}
	node.OperatorFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "take it that what nobody knows was not used")
	command.OutputFlag(cmd, &output)
	return cmd
}

// whatRecovers says what recover would end the wait for, and fails since nothing was done.
func whatRecovers(cmd *cobra.Command, node *remote.Node, region string) error {
	var status quotadv1.StatusResponse
	if err := node.Get(cmd.Context(), "/v1/status", nil).Message(&status, "region"); err != nil {
		return err
	}
	if status.Region != region {
		return exit.Usage(fmt.Errorf("the node that answers is of region %s: name a node of %s with --addr", show.Name(status.Region), show.Name(region)))
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), recovering(status.GetRecovery().GetLimits())); err != nil {
		return err
	}
	return exit.Usage(fmt.Errorf("nothing was changed: of each key that was used before the loss, what nobody knows of may be "+
		"admitted once more in %s; give --yes if that is meant", show.Name(region)))
}

// recovering lists limits with buckets that wait.
func recovering(limits []*quotadv1.RecoveringLimit) (text string) {
	for _, l := range limits {
		text += fmt.Sprintf("  %s: %s asked for here since the loss at %s, of each at most %s once more\n", show.Name(l.Limit),
			show.Counted(int(l.Buckets), "key"), l.Since.AsTime().Format(time.RFC3339), show.Counted(int(l.Units), "unit"))
	}
	if text == "" {
		text = "  no key that this node was asked for waits; other nodes of the region may be asked for others\n"
	}
	return text
}
