package operate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/view"
)

func explainCommand() *cobra.Command {
	var node remote.Node
	var bucket bucketName
	var output string
	var ledger bool
	cmd := &cobra.Command{
		Use:   "explain LIMIT [NAME=VALUE]...",
		Short: "Say why a key was admitted or denied, with all regions beside each other",
		Long: `explain asks all regions, through any one node, how a bucket stands: a limit applied to the key of some descriptors.
It says why the last request on it was decided as it was, and then shows the fixed split of each region, which
it has by itself, and what each holds, has used, and has lent and borrowed. Of a limit that says charge: always it also
shows what each region owes. Nothing is charged.

The domain, and what the limit is for (match), need not be named where one alone fits.

With --ledger it shows instead what the region of the node knows of the bucket: its fixed split, what it holds and has
used, and what it has lent to and borrowed from each other region, cell by cell. A cell is the time for which units are
lent: a window, or a part of one. Lent and returned are what this region has given away, borrowed and regained what it has
heard from the other. The domain and all descriptors must be named.

Exit codes: 0 explained, 1 no such bucket, 5 no node answers, 2 bad usage.`,
		Example: `  quotad explain account-minute account=42
  quotad explain --ledger account-minute --domain api account=42 plan=free`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if ledger {
				return showLedger(cmd, &node, bucket, args, output)
			}
			query, err := explainQuery(cmd, bucket.Domain, args)
			if err != nil {
				return exit.Usage(err)
			}
			return explain(cmd, &node, args[0], query, output)
		},
	}
	node.OperatorFlags(cmd)
	cmd.Flags().StringVar(&bucket.Domain, "domain", "", "domain of the limit, if several have one of this name")
	cmd.Flags().BoolVar(&ledger, "ledger", false, "show the ledger of the bucket in the region of the node")
	command.OutputFlag(cmd, &output)
	return cmd
}

// explainQuery reads the arguments LIMIT [NAME=VALUE]... and returns the query of descriptors.
func explainQuery(cmd *cobra.Command, domain string, args []string) (url.Values, error) {
	if len(args) == 0 || strings.Contains(args[0], "=") {
		return nil, fmt.Errorf("name a limit first, as in %s account-minute account=42", cmd.CommandPath())
	}
	descriptors, err := readDescriptors(args[1:])
	if err != nil {
		return nil, err
	}
	if _, given := descriptors["domain"]; given {
		return nil, errors.New("domain is not a descriptor here; name the limit's domain with --domain")
	}
	return bucketQuery(domain, descriptors), nil
}

// explanation is the API's answer, to be printed.
type explanation struct{ *quotadv1.ExplainResponse }

func explain(cmd *cobra.Command, node *remote.Node, limit string, query url.Values,
	output string) error {
	answer := node.Get(cmd.Context(), "/v1/explain/"+url.PathEscape(limit), query)
	e := explanation{&quotadv1.ExplainResponse{}}
	if err := answer.Message(e, "sentence"); err != nil {
		return refusedBucket(answer, err)
	}
	return answer.Show(cmd.OutOrStdout(), output, e.print)
}

func (e explanation) print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", show.Detail(e.Sentence))
	name := fmt.Sprintf("%s (%s)", show.Name(e.Limit), show.Name(e.Domain))
	if len(e.Descriptors) > 0 {
		name += " " + show.Name(view.Words(e.Descriptors))
	}
	fmt.Fprintf(w, "%s: %d of %d units used", name, e.Used, e.LimitUnits)
	if window := e.Window.AsDuration(); window > 0 {
		fmt.Fprintf(w, ", window %s", policy.FormatWindow(window))
	}
	fmt.Fprintf(w, ", %s", show.Name(cmp.Or(e.GetAlgorithm(), "algorithm not known")))
	if e.Owed != nil {
		fmt.Fprintf(w, ", charged always: owes %d", *e.Owed)
	}
	fmt.Fprint(w, "\n\n")
	t := show.Table(w)
	fmt.Fprintf(t, "REGION\tFIXED SPLIT\tSHARE\tUSED\tFREE%s\tLENT\tBORROWED\tSTATE\tLAST REQUEST\tDOCUMENT\n",
		e.owes("OWES"))
	for _, r := range e.Regions {
		if r.Problem != nil {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-%s\t-\t-\t%s\t%s\t%s\n", show.Name(r.Region), e.owes("-"),
				show.Name(r.GetProblem()), lastWords(r.Last), show.Name(r.Epoch))
			continue
		}
		owed := "-"
		if r.Owed != nil {
			owed = fmt.Sprint(*r.Owed)
		}
		lent, borrowed := traded(r)
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d%s\t%d\t%d\t%s\t%s\t%s\n", show.Name(r.Region), r.Entitlement,
			r.Share, r.Used, r.Free, e.owes(owed), lent, borrowed, viewState(r), lastWords(r.Last), show.Name(r.Epoch))
	}
	for _, region := range e.Silent {
		fmt.Fprintf(t, "%s\t-\t-\t-\t-%s\t-\t-\tDID NOT ANSWER\t\t\n", show.Name(region), e.owes("-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	e.printClasses(w)
	e.printMemory(w)
	return e.printEnvoys(w)
}

// printClasses says what each class may use in each region.
func (e explanation) printClasses(w io.Writer) {
	for _, r := range e.Regions {
		for i, c := range r.GetClasses().GetAll() {
			if i == 0 {
				fmt.Fprintf(w, "\nClasses by %s in %s:\n", show.Name(r.Classes.By), show.Name(r.Region))
			}
			fmt.Fprintf(w, "  %s may use up to %d, %d free\n", show.Name(c.Class), c.MayUse, c.Free)
		}
	}
}

// owes returns a cell of the column of what regions owe, which limits have that are charged always.
func (e explanation) owes(text string) string {
	if e.Owed == nil {
		return ""
	}
	return "\t" + text
}

// printEnvoys says what Envoys were told to admit by themselves.
func (e explanation) printEnvoys(w io.Writer) error {
	for _, r := range e.Regions {
		if len(r.Envoys) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s: %d of the share of %d are assigned to Envoys.\n", show.Name(r.Region),
			r.GetAssigned(), r.Share)
		t := show.Table(w)
		fmt.Fprint(t, "NODE\tSTREAM\tRATE\tBURST\tENDS IN\tWANTS\tSTATE\n")
		for _, one := range r.Envoys {
			wants, state := "not known yet", "ok"
			if one.WantsMilli != nil {
				wants = fmt.Sprintf("%.1f/s", float64(*one.WantsMilli)/1000)
			}
			switch {
			case one.GetGone():
				state = "STREAM OVER"
			case one.GetSilent():
				state = "SILENT"
			case one.Rate == 0:
				state = "no assignment"
			}
			fmt.Fprintf(t, "%s\t%d\t%d/s\t%d\t%s\t%s\t%s\n", show.Name(one.Node), one.Stream,
				one.Rate, one.Burst, show.Span(one.Left.AsDuration().Round(time.Second)), wants, state)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// printMemory says what nodes hold of the bucket beside their stores.
func (e explanation) printMemory(w io.Writer) {
	for _, r := range e.Regions {
		if r.PrefetchedUnits > 0 {
			fmt.Fprintf(w, "\n%s: nodes hold %d prefetched units, which count as used already.\n",
				show.Name(r.Region), r.PrefetchedUnits)
		}
		if len(r.RememberDenial) > 0 {
			fmt.Fprintf(w, "\n%s: a denial is remembered by %s, so the store is asked once in 100 ms.\n",
				show.Name(r.Region), strings.Join(show.Names(r.RememberDenial), ", "))
		}
	}
}

// traded returns the units that a region has lent and borrowed in its present cell, as they stand.
func traded(r *quotadv1.BucketInRegion) (lent, borrowed int64) {
	for _, row := range r.Rights {
		if row.Cell == r.Cell {
			lent += row.Lent - row.Regained
			borrowed += row.Borrowed - row.Returned
		}
	}
	return lent, borrowed
}

// viewState says in words how a bucket is in a region.
func viewState(r *quotadv1.BucketInRegion) string {
	var parts []string
	if r.ClosedUntil != nil {
		parts = append(parts, "CLOSED until "+r.ClosedUntil.AsTime().Format(time.RFC3339))
	}
	for _, d := range r.Degraded {
		text := "degraded: no answer of " + show.Name(d.Region)
		if d.Since != nil {
			text += " since " + d.Since.AsTime().Format(time.TimeOnly) + "Z"
		}
		parts = append(parts, text)
	}
	return cmp.Or(strings.Join(parts, "; "), "ok")
}

// lastWords says what became of the last request.
func lastWords(l *quotadv1.LastRequest) string {
	if l == nil {
		return "none known"
	}
	verb := "denied"
	if l.Allowed {
		verb = "admitted"
	}
	text := fmt.Sprintf("%s %s, %s", verb, show.Ago(time.Since(l.At.AsTime())), show.Name(asjson.Word(l.Reason)))
	if l.GetFromMemory() {
		text += ", from memory"
	}
	return text
}
