package operate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/limits"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func statusCommand() *cobra.Command {
	var node remote.Node
	var output string
	var all, documents bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a node and what it knows of the other regions, all nodes of all regions, or their documents",
		Long: `status shows a node: its policy epoch, its region's store and what is being restored there, its journal, what it
admitted without the store, the other regions as it sees them, and what it has lent and borrowed.

With --all it asks all nodes of all regions, through the node that it reaches, how they are: whether each serves, its
limits document, store, clock and journal, how many nodes its region should have and how many it sees; and from each node
to each other region whether it answers, its round trip and how far its store's clock is apart.

Exit codes: 0 ready, 1 not ready, 5 no node answers. With --all, 0 all is well, 1 something is not (a node is silent or
not ready, a link degraded, a store or journal failed, documents differ).
With --documents it shows which limits documents are open in each region and at each node: a document is open from when a
region takes it until nothing of it counts any more. It shows which node passes over its file and why, and the limits of
which regions have the smaller of their old and new part: since when, and for whom they wait or until when. The node asks
all nodes of all regions for a second. Exit codes then: 0 shown, 5 no node answers.`,
		Example: "  quotad status\n  quotad status --all\n  quotad status --documents",
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case all && documents:
				return exit.Usage(errors.New("--all and --documents are two views: give one of them"))
			case all:
				return statusOfAll(cmd, &node, output)
			case documents:
				return limits.ShowDocuments(cmd, &node, output)
			}
			answer := node.Get(cmd.Context(), "/v1/status", nil)
			s := nodeStatus{&quotadv1.StatusResponse{}}
			if err := answer.Message(s, "region"); err != nil {
				return err
			}
			err := answer.Show(cmd.OutOrStdout(), output, s.print)
			if err == nil && !s.Ready {
				err = fmt.Errorf("node %s/%s is not ready: %s; see its log", show.Name(s.Region),
					show.Name(s.Node), show.Detail(s.GetNotReady()))
			}
			return err
		},
	}
	node.OperatorFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "show all nodes of all regions and the links between them")
	cmd.Flags().BoolVar(&documents, "documents", false, "show which limits documents are open where, and for whom limits wait")
	command.OutputFlag(cmd, &output)
	return cmd
}

func (s nodeStatus) print(w io.Writer) error {
	ready := "yes"
	if !s.Ready {
		ready = "no: " + show.Detail(s.GetNotReady())
	}
	t := show.Table(w)
	// The texts are made safe to show by the callers.
	row := func(name, text string) { fmt.Fprintf(t, "%s\t%s\n", name, text) }
	row("node", fmt.Sprintf("%s/%s, version %s", show.Name(s.Region), show.Name(s.Node),
		show.Name(s.Version)))
	row("ready", ready)
	if s.GetUnproven() {
		row("regions", "NOT PROVEN: the fixed split, documents from files and apply alone; set gossip_keys or peer_tls")
	}
	row("policy", "epoch "+show.Name(s.Epoch)+documentsWords(s.Documents))
	row("store", storePlace(s.Store, s.Generation))
	row("store state", storeState(s.Store))
	row("recovery", recoveryWords(s.Recovery))
	row("journal", journalWords(s.Journal))
	row("local", localWords(s.Local))
	row("members", strings.Join(show.Names(s.Members), ", "))
	row("mates", matesWords(s.Mates, s.GetStore().GetNodes()))
	row("roles", rolesWords(s.Roles))
	if err := t.Flush(); err != nil {
		return err
	}
	t = show.Table(w)
	if len(s.Peers) > 0 {
		fmt.Fprint(t, "\nREGION\tSTATE\tLAST ANSWER\tROUND TRIP\tCLOCK\n")
	}
	for _, p := range s.Peers {
		fmt.Fprintf(t, "%s\n", peerRow(p, "degraded"))
	}
	if len(s.Counters) > 0 {
		fmt.Fprint(t, "\nCOUNTER\tSINCE START\n")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		fmt.Fprintf(t, "%s\t%d\n", show.Name(name), s.Counters[name])
	}
	return t.Flush()
}
