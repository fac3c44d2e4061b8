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
	"github.com/quotad/quotad/region/front/api"
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
type overview api.Overview

func (o overview) printAll(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprint(t, "NODE\tREADY\tUP\tDOCUMENT\tSTORE\tLOSSES\tCLOCK\tJOURNAL\tNODES\tRECOVERING\n")
	for _, n := range o.Nodes {
		ready := "yes"
		if !n.Ready {
			ready = "NO"
		}
		clock := "-"
		if n.Store.ClockApart != nil {
			clock = ahead(*n.Store.ClockApart)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d of %d\t%s\n", nodeName(n), ready,
			show.Lasted(n.At.Sub(n.Started)), show.Name(strings.Join(n.Documents, " ")), storeWord(n.Store),
			n.Store.Losses, clock, journalWord(n.Journal), n.Mates+1, n.Store.Nodes,
			orDash(n.Recovery))
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

func nodeName(n api.NodeOverview) string { return show.Name(n.Region + "/" + n.Node) }

func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// storeWord says in a word how a store is.
func storeWord(s api.NodeStore) string {
	switch {
	case s.Stopped != "":
		return "NOT USED"
	case s.OutOfReach > 0:
		return "OUT OF REACH"
	case len(s.Refusing) > 0:
		return "REFUSES " + show.Name(strings.Join(s.Refusing, " "))
	case s.Rivals > 0:
		return "A SECOND ONE"
	case s.MaxmemoryPolicy != "" && s.MaxmemoryPolicy != store.NoEviction:
		return "MAY FORGET"
	}
	return cmp.Or(show.Name(s.Kind), "-")
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
			all = append(all, name+" is not ready: "+show.Detail(n.NotReady))
		}
		if s := n.Store; s.Stopped != "" || s.OutOfReach > 0 || len(s.Refusing) > 0 || s.Rivals > 0 {
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
			strings.Join(show.Names(documents), ", ")+" (quotad limits status says why)")
	}
	return all
}

// fetchOverview asks a node for an overview with so many of the hottest buckets.
func fetchOverview(cmd *cobra.Command, node *remote.Node, hottest int) (o overview, answer remote.Answer, err error) {
	answer = node.Get(cmd.Context(), "/v1/overview", url.Values{"hottest": {fmt.Sprint(hottest)}})
	err = answer.Into(&o, func() bool { return len(o.Nodes) > 0 })
	return o, answer, err
}
