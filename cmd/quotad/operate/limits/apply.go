package limits

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/operators"
)

func applyCommand() *cobra.Command {
	var a applying
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Give a limits document to a node, from which all regions take it",
		Long: `apply checks a limits document, shows what it changes (see quotad limits diff), gives it to a node and shows which region
has acknowledged it, until all have or --wait is over. The other nodes of the region find it in their Redis, the other
regions fetch it. It stays in force when nodes are started anew with older files, which they pass over; so give the file
to all of them as well.

A region goes only by a document that names it in its list "removed", in which later documents keep it. A version more than
2^32 above the one that is open needs --yes: no later version may be lower.

Exit codes: 0 all regions acknowledged, 1 not all did, or the node refuses the document, 2 the document is invalid, 5 no
node answers.`,
		Example:           "  quotad limits apply limits.yaml --addr https://quota.us-east.example.org:8083 --token-file admin.token",
		Args:              command.OneArgument("limits document", "limits.yaml"),
		ValidArgsFunction: command.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := Load(args[0])
			if err != nil {
				return err
			}
			before, err := a.newest(cmd.Context())
			if err != nil {
				return err
			}
			return a.apply(cmd, before, d, Path(args[0]))
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&a.yes, "yes", false, "the version may rise by more than 2^32")
	return cmd
}

// applying is what it takes to give a document to a node.
type applying struct {
	node remote.Node
	wait time.Duration
	yes  bool // the version may rise by more than policy.MaxStep
}

func (a *applying) flags(cmd *cobra.Command) {
	a.node.OperatorFlags(cmd)
	cmd.Flags().DurationVar(&a.wait, "wait", 30*time.Second,
		"how long to wait for the regions to acknowledge; 0: not at all")
}

// newest returns the newest document that is open at the node.
func (a *applying) newest(ctx context.Context) (*policy.Document, error) {
	answer := a.node.Get(ctx, "/v1/document", nil)
	if answer.Code != 200 {
		return nil, answer.Refusal()
	}
	d, err := policy.Parse("the node's document", answer.Body)
	if err != nil {
		return nil, fmt.Errorf("the node has a document that this quotad cannot read; use the node's version of quotad: %w",
			err)
	}
	return d, nil
}

// apply shows what a document changes, gives it to the node, and waits for the regions. what names
// the document.
func (a *applying) apply(cmd *cobra.Command, before, d *policy.Document, what string) error {
	out := cmd.OutOrStdout()
	if d.Epoch() != before.Epoch() {
		difference, err := differ(before, d)
		if err != nil {
			return exit.Usage(fmt.Errorf("%s cannot follow epoch %s, which is open: %w", what, before.Epoch(), err))
		}
		if err := difference.print(out); err != nil {
			return err
		}
	}
	answer := a.node.PostYAML(cmd.Context(), "/v1/apply", url.Values{"yes": {strconv.FormatBool(a.yes)}}, d.Source())
	var done operators.Applied
	if err := answer.Into(&done, func() bool { return done.Epoch != "" }); err != nil {
		return err
	}
	if done.Before == done.Epoch {
		fmt.Fprintf(out, "\nepoch %s was open already\n", show.Name(done.Epoch))
	} else {
		fmt.Fprintf(out, "\napplied: epoch %s after %s\n", show.Name(done.Epoch), show.Name(done.Before))
	}
	return a.follow(cmd.Context(), out, before, d)
}

// lookEvery is how often the node is asked which regions have acknowledged.
const lookEvery = 200 * time.Millisecond

// follow shows which regions have acknowledged a document until all have, or the wait is over.
func (a *applying) follow(ctx context.Context, out io.Writer, before, d *policy.Document) error {
	if a.wait <= 0 {
		return nil
	}
	waited := regionsToAcknowledge(before, d)
	begun := time.Now()
	for {
		var now quotadv1.DocumentsResponse
		answer := a.node.Get(ctx, "/v1/documents", nil)
		if err := answer.Message(&now, "open"); err != nil {
			return err
		}
		waited = slices.DeleteFunc(waited, func(region string) bool {
			done := acknowledged(&now, region, before, d)
			if done {
				fmt.Fprintf(out, "%6.1fs  %s acknowledged\n", time.Since(begun).Seconds(), region)
			}
			return done
		})
		if len(waited) == 0 {
			return tellHeld(out, &now)
		}
		if time.Since(begun) >= a.wait {
			return fmt.Errorf("%s did not acknowledge epoch %s within %s: limits of which it gets less keep to the smaller of their old and new parts until it does; "+
				"see quotad status --documents, and quotad regions fence if it is stopped for good", strings.Join(waited, ", "), d.Epoch(), show.Span(a.wait))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// regionsToAcknowledge returns the regions of two documents that the newer one does not fence.
func regionsToAcknowledge(before, d *policy.Document) (all []string) {
	for _, r := range append(slices.Clone(d.Regions), before.Regions...) {
		if !d.Fences(r.Name) && !slices.Contains(all, r.Name) {
			all = append(all, r.Name)
		}
	}
	return all
}

// acknowledged reports whether a region has acknowledged a document, or a newer one. A region that the
// newer document leaves out is no longer among those of the answer when that is in force.
func acknowledged(now *quotadv1.DocumentsResponse, region string, before, d *policy.Document) bool {
	open, found := now.Open, region == now.Region
	for _, r := range now.Regions {
		if r.Region == region {
			open, found = r.Open, true
		}
	}
	if !found {
		return len(now.Open) == 1 && now.Open[0].Document != before.Epoch().String()
	}
	return slices.ContainsFunc(open, func(o *quotadv1.OpenDocument) bool {
		return o.Acknowledged != nil &&
			(o.Document == d.Epoch().String() || versionOf(o.Document) > d.Version)
	})
}

// versionOf returns the version in an epoch, 0 if there is none.
func versionOf(epoch string) (version int64) {
	_, _ = fmt.Sscanf(epoch, "%d-", &version)
	return version
}

// tellHeld says for how long an older document still binds limits.
func tellHeld(out io.Writer, now *quotadv1.DocumentsResponse) error {
	if now.Held == 0 {
		_, err := fmt.Fprintln(out, "in force in all regions")
		return err
	}
	until := "until a time that is not known yet"
	var last time.Time
	for _, l := range now.Limits {
		if until := l.Until.AsTime(); l.Until != nil && until.After(last) {
			last = until
		}
	}
	if !last.IsZero() {
		until = "until " + last.Local().Format(time.RFC3339) + " at the latest, by the clock of this region's Redis"
	}
	_, err := fmt.Fprintf(out, "open in all regions; an older document still binds %s %s\n", show.Counted(int(now.Held), "limit"), until)
	return err
}
