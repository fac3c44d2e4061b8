package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/front/callers"
)

// question is a request as JSON for the API.
type question struct {
	Domain      string            `json:"domain"`
	Descriptors map[string]string `json:"descriptors"`
	Cost        int64             `json:"cost"`
	RequestID   string            `json:"request_id,omitempty"`
	Receipt     bool              `json:"receipt,omitempty"`
}

// decision is the API's answer, to be printed. What was not counted is nil.
type decision callers.Decision

func checkCommand() *cobra.Command {
	var node remote.Node
	var q question
	var peek bool
	var output string
	cmd := &cobra.Command{
		Use:   "check --domain DOMAIN [NAME=VALUE]...",
		Short: "Ask a node whether a request may be served, and charge it",
		Long: `check asks a node to decide one request, described by descriptors such as account=42, and charges it if it is allowed.
A request that is delayed is allowed: a leaky_bucket has it wait for its turn, and says how long.

Exit codes: 0 allowed, 4 denied, 5 no node answers, 2 bad usage.`,
		Example: `  quotad check --domain api account=42 plan=free
  quotad check --domain api --cost 10 --peek -o json account=42
  quotad check --domain api --request-id order-7 --receipt account=42`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Domain == "" {
				return exit.Usage(fmt.Errorf(
					"--domain is missing; name the domain of the limits to check, such as --domain api"))
			}
			if q.Descriptors, err = readDescriptors(args); err != nil {
				return exit.Usage(err)
			}
			if peek && (q.Receipt || q.RequestID != "") {
				return exit.Usage(errors.New(
					"--peek charges nothing, so there is nothing to remember or to settle: leave --request-id and --receipt out"))
			}
			return check(cmd, &node, q, peek, output)
		},
	}
	node.CallerFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&q.Domain, "domain", "", "domain of the limits to check")
	f.Int64Var(&q.Cost, "cost", 1, "units to charge")
	f.BoolVar(&peek, "peek", false, "say what would be decided, and charge nothing")
	f.StringVar(&q.RequestID, "request-id", "",
		"name of the request, at most 128 bytes: sent again within a minute it is not charged again")
	f.BoolVar(&q.Receipt, "receipt", false,
		"ask for a receipt, with which quotad settle says what was used of the charge")
	command.OutputFlag(cmd, &output)
	return cmd
}

// readDescriptors reads name=value arguments.
func readDescriptors(args []string) (map[string]string, error) {
	descriptors := make(map[string]string, len(args))
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not a descriptor; write it like account=42", arg)
		}
		if !utf8.ValidString(arg) { // JSON would turn different keys into the same one
			return nil, fmt.Errorf(
				"descriptor %q is not valid UTF-8; the HTTP API takes text only, so call gRPC's with a hash of it", arg)
		}
		if _, twice := descriptors[name]; twice {
			return nil, fmt.Errorf("descriptor %s is given twice; keep one", name)
		}
		descriptors[name] = value
	}
	return descriptors, nil
}

func check(cmd *cobra.Command, node *remote.Node, q question, peek bool, output string) error {
	path := "/v1/check"
	if peek {
		path = "/v1/peek"
	}
	answer := node.Post(cmd.Context(), path, q)
	// Denials come with several status codes. If the store failed, the answer is a problem that
	// contains the decision.
	var d decision
	if json.Unmarshal(answer.Body, &d) != nil || d.Reason == "" {
		return answer.Refusal()
	}
	inWords := func(w io.Writer) error { return d.print(w, q.Receipt) }
	err := answer.Show(cmd.OutOrStdout(), output, inWords)
	if err == nil && !d.Allowed {
		err = exit.Silently(exit.Denied)
	}
	return err
}

// print writes a decision in words. asked says that a receipt was asked for.
func (d decision) print(w io.Writer, asked bool) error {
	t := show.Table(w)
	verdict := "denied"
	if d.Allowed {
		verdict = "allowed"
	}
	show.Row(t, "decision", "%s (%s)", verdict, string(d.Reason))
	if d.Limit != "" {
		show.Row(t, "limit", "%s: %s over all regions", d.Limit, show.Counted(int(orZero(d.LimitUnits)),
			"unit"))
		show.Row(t, "algorithm", "%s", d.Algorithm)
	}
	if d.Delay != nil {
		show.Row(t, "delay", "serve it in %s, when its turn has come", d.Delay.Rounded())
	}
	if d.Remaining != nil {
		show.Row(t, "remaining", "%d", *d.Remaining)
	}
	if d.Class != "" {
		kept := ""
		if d.Kept > 0 {
			kept = fmt.Sprintf("; %s kept for classes with a larger part", show.Counted(int(d.Kept), "free unit"))
		}
		show.Row(t, "class", "%s%s", show.Name(d.Class), kept)
	}
	if d.Share != nil && d.Entitlement != nil {
		show.Row(t, "share", "%d, fixed split %d", *d.Share, *d.Entitlement)
	}
	if d.ResetAfter != nil {
		show.Row(t, "resets in", "%s", d.ResetAfter.Rounded())
	}
	if d.RetryAfter != nil {
		show.Row(t, "retry in", "%s", d.RetryAfter.Rounded())
	}
	show.Row(t, "decided by", "%s/%s", d.Region, d.Node)
	if d.Degraded {
		show.Row(t, "degraded", "yes: a region of the limit does not answer, so nothing can be borrowed from it")
	}
	if d.Repeated {
		show.Row(t, "repeated", "yes: it was charged before under its request id, and not again")
	}
	switch {
	case d.Receipt != "":
		// It is not cut, because settle needs all of it.
		fmt.Fprintf(t, "receipt\t%s\n", show.Printable(d.Receipt))
	case asked && d.Allowed:
		show.Row(t, "receipt", "none: no store charged anything")
	}
	if len(d.Shadowed) > 0 {
		show.Row(t, "shadow", "%s would have denied", strings.Join(show.Names(d.Shadowed), ", "))
	}
	return t.Flush()
}

func orZero(n *quantity.Units) quantity.Units {
	if n == nil {
		return 0
	}
	return *n
}
