package operate

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/front/asjson"
)

// cutRequest is a cut as JSON for the API.
type cutRequest struct {
	Region    string `json:"region"`
	For       string `json:"for,omitempty"`
	Direction string `json:"direction,omitempty"`
	Heal      bool   `json:"heal,omitempty"`
}

func cutCommand() *cobra.Command {
	var node remote.Node
	var q cutRequest
	var length time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "cut REGION {--for DURATION | --heal}",
		Short: "Cut a node off from another region for a while, to rehearse a partition",
		Long: `cut has a node drop all that goes to the nodes of another region and comes from them, as a network does that loses
packets: streams stall, and nobody is told. It ends by itself after --for, at most 10m, or with --heal.

The node must have been started with chaos: true; any other refuses. A cut is made at one node: to cut a whole region off,
cut each of its nodes off from each other region. Nodes are told apart by their IP addresses, so those of different
regions must not share one; on one machine all of them need chaos: true, for their calls to leave from their own addresses.

Exit codes: 0 cut or healed, 1 the node makes no cuts, 2 no such region or bad usage, 5 no node answers.`,
		Example: `  quotad cut eu-west --for 30s
  quotad cut eu-west --for 30s --direction in    # they hear this node, which does not hear them
  quotad cut eu-west --heal`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch long := cmd.Flags().Changed("for"); {
			case len(args) != 1:
				return exit.Usage(fmt.Errorf("name one region, as in %s eu-west --for 30s",
					cmd.CommandPath()))
			case long == q.Heal:
				return exit.Usage(errors.New("give either --for, such as --for 30s, or --heal"))
			case long:
				q.For = length.String()
			}
			q.Region = args[0]
			return requestCut(cmd, &node, q, output)
		},
	}
	node.OperatorFlags(cmd)
	cmd.Flags().DurationVar(&length, "for", 0, "how long to cut, at most 10m")
	cmd.Flags().StringVar(&q.Direction, "direction", "both", "what to drop: in, out or both")
	cmd.Flags().BoolVar(&q.Heal, "heal", false, "end the cut now")
	command.OutputFlag(cmd, &output)
	return cmd
}

func requestCut(cmd *cobra.Command, node *remote.Node, q cutRequest, output string) error {
	answer := node.Post(cmd.Context(), "/v1/cut", q)
	var done struct {
		Region    string               `json:"region"`
		For       *asjson.Milliseconds `json:"for_ms"`
		Addresses []string             `json:"addresses"`
		Lost      *uint64              `json:"packets_lost"` // nil: an older node does not tell
	}
	if err := answer.Into(&done, func() bool { return done.For != nil }); err != nil {
		return err
	}
	line := fmt.Sprintf("cut off from %s for %s", show.Name(done.Region),
		show.Span(done.For.Rounded()))
	if q.Heal {
		line = "healed: cut off no more from " + show.Name(done.Region)
	}
	line += " (" + strings.Join(show.Names(done.Addresses), ", ") + ")"
	if done.Lost != nil {
		line += fmt.Sprintf("; cuts have lost %d packets since the node started", *done.Lost)
	}
	return answer.Show(cmd.OutOrStdout(), output, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, line)
		return err
	})
}
