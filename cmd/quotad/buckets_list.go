package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/api"
	"github.com/quotad/quotad/region/view"
)

func bucketsListCommand() *cobra.Command {
	var node remote.Node
	var limit, domain, output string
	var most int
	cmd := &cobra.Command{
		Use:   "list [NAME=PREFIX]...",
		Short: "List the buckets that a node was asked about lately",
		Long: `list shows the buckets that a node has in memory: those that it was asked about lately, some 32,768 at most. With
NAME=PREFIX it shows those whose key has a value of that name which begins so. It does not search the region's store.

Exit codes: 0 listed, 5 no node answers, 2 bad usage.`,
		Example: "  quotad buckets list --limit account-minute account=4",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix, err := readDescriptors(args)
			if err != nil {
				return exit.Usage(err)
			}
			query := url.Values{"most": {fmt.Sprint(most)}}
			for name, value := range prefix {
				query.Set(name, value)
			}
			for name, value := range map[string]string{"limit": limit, "domain": domain} {
				if value != "" {
					query.Set(name, value)
				}
			}
			answer := node.Get(cmd.Context(), "/v1/buckets", query)
			var l listedBuckets
			if err := answer.Into(&l, func() bool { return l.Buckets != nil }); err != nil {
				return err
			}
			return answer.Show(cmd.OutOrStdout(), output, l.print)
		},
	}
	node.OperatorFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&limit, "limit", "", "buckets of this limit alone")
	f.StringVar(&domain, "domain", "", "buckets of this domain alone")
	f.IntVar(&most, "most", 100, "buckets to list, 1 to 1000")
	outputFlag(cmd, &output)
	return cmd
}

// listedBuckets is the API's answer, to be printed.
type listedBuckets api.ListedBuckets

func (l listedBuckets) print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprint(t, "LIMIT\tDOMAIN\tKEY\tLAST REQUEST AT THIS NODE\n")
	for _, b := range l.Buckets {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", show.Name(b.Limit), show.Name(b.Domain),
			show.Name(view.Words(b.Descriptors)), lastWords(b.Last))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if l.More {
		fmt.Fprintln(w, "There are more: name more of the key, or raise --most.")
	}
	return nil
}
