package operate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/memory/store"
)

// statusOfAll shows all nodes of all regions, and the links between them.
func statusOfAll(cmd *cobra.Command, node *remote.Node, output string) error {
	o, answer, err := fetchOverview(cmd, node, 0)
	if err != nil {
		return err
	}
	if err := answer.Show(cmd.OutOrStdout(), output, o.printAll); err != nil {
		return err
	}
	if wrong := o.wrong(); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// overview is the API's answer, to be printed.
type overview struct{ *quotadv1.OverviewResponse }

func (o overview) printAll(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprint(t, "NODE\tREADY\tUP\tDOCUMENT\tSTORE\tLOSSES\tCLOCK\tJOURNAL\tNODES\tRECOVERING\n")
	for _, n := range o.Nodes {
		ready := "yes"
		if !n.Ready {
			ready = "NO"
		}
		clock := "-"
		if n.GetStore().GetClockApart() != nil {
			clock = ahead(n.GetStore().GetClockApart())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d of %d\t%s\n", nodeName(n), ready,
			show.Lasted(n.At.AsTime().Sub(n.Started.AsTime())), show.Name(strings.Join(n.Documents, " ")), storeWord(n.Store),
			n.GetStore().GetLosses(), clock, journalWord(n.Journal), n.Mates+1, n.GetStore().GetNodes(),
			orDash(n.Recovering))
	}
	for _, name := range o.Silent {
		fmt.Fprintf(t, "%s\tSILENT\t\t\t\t\t\t\t\t\n", show.Name(name))
	}
	fmt.Fprint(t, "\nFROM\tTO\tSTATE\tLAST ANSWER\tROUND TRIP\tCLOCK\n")
	for _, n := range o.Nodes {
		for _, p := range n.Peers {
			fmt.Fprintf(t, "%s\t%s\n", nodeName(n), peerRow(p, "DEGRADED"))
		}
	}
	return t.Flush()
}

func nodeName(n *quotadv1.NodeOverview) string { return show.Name(n.Region + "/" + n.Node) }

func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// storeWord says in a word how a store is.
func storeWord(s *quotadv1.NodeStore) string {
	switch {
	case s.GetStopped() != "":
		return "NOT USED"
	case s.GetOutOfReach() > 0:
		return "OUT OF REACH"
	case len(s.GetRefusing()) > 0:
		return "REFUSES " + show.Name(strings.Join(s.GetRefusing(), " "))
	case s.GetRivals() > 0:
		return "A SECOND ONE"
	case s.GetMaxmemoryPolicy() != "" && s.GetMaxmemoryPolicy() != store.NoEviction:
		return "MAY FORGET"
	}
	return cmp.Or(show.Name(s.GetKind()), "-")
}

func journalWord(state string) string {
	switch state {
	case "failed":
		return "FAILED"
	case "not_whole":
		return "not whole"
	}
	return show.Name(state)
}

// wrong says what is not as it should be.
func (o overview) wrong() (all []string) {
	if len(o.Silent) > 0 {
		all = append(all, "no answer of "+strings.Join(show.Names(o.Silent), ", "))
	}
	var documents []string
	for _, n := range o.Nodes {
		name := nodeName(n)
		if !n.Ready {
			all = append(all, name+" is not ready: "+show.Detail(n.GetNotReady()))
		}
		if s := n.Store; s.GetStopped() != "" || s.GetOutOfReach() > 0 || len(s.GetRefusing()) > 0 || s.GetRivals() > 0 {
			all = append(all, "the store of "+name+" is not as it should be (quotad status says more)")
		}
		if n.Journal == "failed" {
			all = append(all, "the journal of "+name+" failed")
		}
		for _, p := range n.Peers {
			if p.Degraded {
				all = append(all, name+" gets no answer of "+show.Name(p.Region))
			}
		}
		documents = append(documents, n.Epoch)
	}
	slices.Sort(documents)
	if documents = slices.Compact(documents); len(documents) > 1 {
		all = append(all, "regions have different limits documents: "+
			strings.Join(show.Names(documents), ", ")+" (quotad status --documents says why)")
	}
	return all
}

// fetchOverview asks a node for an overview with so many of the hottest buckets.
func fetchOverview(cmd *cobra.Command, node *remote.Node, hottest int) (o overview, answer remote.Answer, err error) {
	answer = node.Get(cmd.Context(), "/v1/overview", url.Values{"hottest": {fmt.Sprint(hottest)}})
	o = overview{&quotadv1.OverviewResponse{}}
	return o, answer, answer.Message(o, "nodes")
}
