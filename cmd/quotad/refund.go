package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

func refundCommand() *cobra.Command {
	var node remote
	var output string
	cmd := &cobra.Command{
		Use:   "refund RECEIPT",
		Short: "Give back what a decision charged",
		Long: `refund gives back what quotad check --receipt charged, once: a second time it says what was given back the first time.
It goes to a node of the region that decided. Units whose cell no longer counts, and turns in the queue of a
leaky_bucket, cannot be given back.

Exit codes: 0 given back, now or before, 1 nothing was given back, 5 no node answers, 2 bad usage or no receipt.`,
		Example: "  quotad refund \"$receipt\"\n  quotad refund --addr http://10.0.0.7:8080 -o json \"$receipt\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usage(errors.New("name one receipt of quotad check --receipt"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return refund(cmd, &node, args[0], output) },
	}
	node.flags(cmd)
	outputFlag(cmd, &output)
	return cmd
}

// refunded is what is printed of the API's answer.
type refunded struct {
	Repeated bool             `json:"repeated"`
	Charges  []refundedCharge `json:"refunded"`
}

type refundedCharge struct {
	Limit  string `json:"limit"`
	Units  int64  `json:"units"`
	Reason string `json:"reason"`
}

func refund(cmd *cobra.Command, node *remote, receipt, output string) error {
	code, answer, err := node.post(cmd.Context(), "/v1/refund", map[string]string{"receipt": receipt})
	if err != nil {
		return err
	}
	var r refunded
	if code != http.StatusOK || json.Unmarshal(answer, &r) != nil || r.Charges == nil {
		return node.refused(code, answer)
	}
	if output == "json" {
		err = indented(cmd.OutOrStdout(), answer)
	} else {
		err = r.print(cmd.OutOrStdout())
	}
	if err == nil {
		err = r.refusal()
	}
	return err
}

func (r refunded) print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprintln(t, "LIMIT\tGIVEN BACK\tNOTE")
	for _, c := range r.Charges {
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
		fmt.Fprintf(t, "%s\t%s\t%s\n", show.Name(c.Limit), show.Counted(int(c.Units), "unit"), show.Name(note))
	}
	return t.Flush()
}

// refusal is the error of a refund that gave nothing back, now or before.
func (r refunded) refusal() error {
	var why []string
	for _, c := range r.Charges {
		if c.Units > 0 {
			return nil
		}
		why = append(why, fmt.Sprintf("%s: %s", show.Name(c.Limit), show.Name(orNone(c.Reason))))
	}
	if len(why) == 0 {
		return errors.New("nothing was given back: the receipt has no charges; there is nothing to do")
	}
	return fmt.Errorf("nothing was given back (%s); what no longer counts is free again by itself, so there is nothing to do", strings.Join(why, "; "))
}
