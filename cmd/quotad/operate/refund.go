package operate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func refundCommand() *cobra.Command {
	var node remote.Node
	var output string
	cmd := &cobra.Command{
		Use:   "refund RECEIPT",
		Short: "Give back what a decision charged",
		Long: `refund gives back what quotad check --receipt charged, once: a second time it says what was given back the first time.
It goes to a node of the region that decided. Units that count no longer, as of a window that is over, and turns in the
queue of a leaky_bucket cannot be given back.

Exit codes: 0 given back, now or before, 1 nothing was given back, 5 no node answers, 2 bad usage or no receipt.`,
		Example: "  quotad refund \"$receipt\"\n  quotad refund --addr http://10.0.0.7:8080 -o json \"$receipt\"",
		Args:    command.OneArgument("receipt of quotad check --receipt", `"$receipt"`),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer := node.Post(cmd.Context(), "/v1/refund", map[string]string{"receipt": args[0]})
			r := refunded{&quotadv1.RefundResponse{}}
			if err := answer.Message(r, "refunded"); err != nil {
				return err
			}
			if err := answer.Show(cmd.OutOrStdout(), output, r.print); err != nil {
				return err
			}
			return r.refusal()
		},
	}
	node.CallerFlags(cmd)
	command.OutputFlag(cmd, &output)
	return cmd
}

// refunded is the API's answer, to be printed.
type refunded struct{ *quotadv1.RefundResponse }

func (r refunded) print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprintln(t, "LIMIT\tGIVEN BACK\tNOTE")
	for _, c := range r.Refunded {
		note := c.Reason
		switch {
		case r.Repeated && note == "":
			note = "before, not again"
		case r.Repeated:
			note = "before: " + note
		}
		if note == "" {
			note = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", show.Name(c.Limit), show.Counted(int(c.Units), "unit"),
			show.Name(note))
	}
	return t.Flush()
}

// refusal returns the error of a refund that gave nothing back, neither now nor before.
func (r refunded) refusal() error {
	var why []string
	for _, c := range r.Refunded {
		if c.Units > 0 {
			return nil
		}
		why = append(why, fmt.Sprintf("%s: %s", show.Name(c.Limit),
			show.Name(show.OrNone(c.Reason))))
	}
	if len(why) == 0 {
		return errors.New("nothing was given back: the receipt has no charges; there is nothing to do")
	}
	return fmt.Errorf("nothing was given back (%s); what no longer counts is free again by itself, so there is nothing to do", strings.Join(why, "; "))
}
