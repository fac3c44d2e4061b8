package limits

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// ShowDocuments shows, as one node sees it, which limits documents are open where.
func ShowDocuments(cmd *cobra.Command, node *remote.Node, output string) error {
	answer := node.Get(cmd.Context(), "/v1/documents", nil)
	d := documentsStatus{&quotadv1.DocumentsResponse{}}
	if err := answer.Message(d, "open"); err != nil {
		return err
	}
	return answer.Show(cmd.OutOrStdout(), output, d.print)
}

// documentsStatus is the API's answer, to be printed.
type documentsStatus struct{ *quotadv1.DocumentsResponse }

func (d documentsStatus) print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprint(t, "REGION\tOPEN\tACKNOWLEDGED\tWAITED FOR\n")
	own := &quotadv1.RegionDocuments{Region: d.Region, Open: d.Open}
	for _, r := range append([]*quotadv1.RegionDocuments{own}, d.Regions...) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", show.Name(r.Region), openWords(r), acknowledgedWords(r.Open),
			waitedWords(r.Waited.AsDuration()))
		if r.GetRefused() != "" {
			fmt.Fprintf(t, "\tNOT TAKEN: %s\n", show.Detail(r.GetRefused()))
		}
	}
	fmt.Fprint(t, "\nNODE\tOPEN\tITS FILE\n")
	for _, n := range d.Nodes {
		file := "taken"
		if n.GetFileRefused() != "" {
			file = "PASSED OVER: " + show.Detail(n.GetFileRefused())
		}
		open := strings.Join(show.Names(n.Open), " + ")
		if open == "" {
			open = "does not serve"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", show.Name(n.Node), open, file)
	}
	if len(d.Limits) > 0 {
		fmt.Fprint(t, "\nLIMIT THAT AN OLDER DOCUMENT BINDS\tSINCE\tUNTIL\n")
	}
	for _, l := range d.Limits {
		fmt.Fprintf(t, "%s\t%s\t%s\n", heldName(l), clockTime(l.Since), heldUntil(l))
	}
	if more := int(d.Held) - len(d.Limits); more > 0 {
		fmt.Fprintf(t, "and %s more\n", show.Counted(more, "limit"))
	}
	return t.Flush()
}

func openWords(r *quotadv1.RegionDocuments) string {
	if len(r.Open) == 0 {
		return "NOT HEARD"
	}
	var all []string
	for _, o := range r.Open {
		all = append(all, show.Name(o.Document))
	}
	return strings.Join(all, " + ")
}

// acknowledgedWords says when the newest of some documents was acknowledged.
func acknowledgedWords(open []*quotadv1.OpenDocument) string {
	if len(open) == 0 {
		return "-"
	}
	return clockTime(open[len(open)-1].Acknowledged)
}

func waitedWords(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return "FOR " + show.Span(d.Round(100*time.Millisecond))
}

func heldName(l *quotadv1.HeldLimit) string {
	name := show.Name(l.Domain) + "/" + show.Name(l.Limit)
	if len(l.Match) > 0 {
		name += " (" + show.Name(conditions(l.Match)) + ")"
	}
	switch {
	case l.GetCharged():
		name += ", removed and charged still"
	case l.GetRemoved():
		name += ", removed, its parts still known"
	}
	return name
}

func heldUntil(l *quotadv1.HeldLimit) string {
	if len(l.Waiting) > 0 {
		return "waits for " + strings.Join(show.Names(l.Waiting), ", ")
	}
	return clockTime(l.Until)
}

// clockTime writes a time that may not be known.
func clockTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return "not yet"
	}
	return t.AsTime().Local().Format(time.RFC3339)
}
