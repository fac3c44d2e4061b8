package operate

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func settleCommand() *cobra.Command {
	var node remote.Node
	var output string
	cmd := &cobra.Command{
		Use:   "settle RECEIPT USED",
		Short: "Settle what a decision charged by what was used",
		Long: `settle says how many units were used of what quotad check --receipt charged. If less was used, the rest is given back; if
more, what is above is charged, whatever is left. It does so once: a second time it says what came of it the first time. It
goes to a node of the region that decided, within the time that the limit says (settle_within). Units that count no longer,
as of a window that is over, and turns in the queue of a leaky_bucket are neither given back nor charged.

Exit codes: 0 settled, now or before, 1 nothing could be given back or charged, 5 no node answers, 2 bad usage or no receipt.`,
		Example: "  quotad settle \"$receipt\" 0\n  quotad settle --addr http://10.0.0.7:8080 -o json \"$receipt\" 700",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Usage(fmt.Errorf(`name one receipt of quotad check --receipt and what was used, as in %s "$receipt" 700`, cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			used, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || used < 0 {
				return exit.Usage(fmt.Errorf("USED %q is no number of units: give a whole number from 0 on", args[1]))
			}
			answer := node.Post(cmd.Context(), "/v1/settle", map[string]any{"receipt": args[0], "used": used})
			r := settled{&quotadv1.SettleResponse{}}
			if err := answer.Message(r, "settled"); err != nil {
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

// settled is the API's answer, to be printed.
type settled struct{ *quotadv1.SettleResponse }

func (r settled) print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprintln(t, "LIMIT\tUSED\tGIVEN BACK\tCHARGED\tOWED\tNOTE")
	for _, c := range r.Settled {
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
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", show.Name(c.Limit), r.Used, show.Counted(int(c.Back), "unit"),
			show.Counted(int(c.Charged), "unit"), show.Counted(int(c.Owed), "unit"), show.Name(note))
	}
	return t.Flush()
}

// refusal returns the error of a settlement of which nothing came for any limit.
func (r settled) refusal() error {
	var why []string
	for _, c := range r.Settled {
		if c.Reason == "" {
			return nil
		}
		why = append(why, fmt.Sprintf("%s: %s", show.Name(c.Limit), show.Name(c.Reason)))
	}
	if len(why) == 0 {
		return errors.New("nothing was settled: the receipt has no charges; there is nothing to do")
	}
	return fmt.Errorf("nothing was settled (%s); what no longer counts is free again by itself, so there is nothing to do", strings.Join(why, "; "))
}
