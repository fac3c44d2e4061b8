package operate

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/view"
)

// wantedBuckets are the buckets to list.
type wantedBuckets struct{ limit, domain string }

// list lists the buckets that a node was asked about lately.
func (b wantedBuckets) list(cmd *cobra.Command, node *remote.Node, prefixes []string, most int, output string) error {
	prefix, err := readDescriptors(prefixes)
	if err != nil {
		return exit.Usage(err)
	}
	query := url.Values{"most": {fmt.Sprint(most)}}
	for name, value := range prefix {
		query.Set(name, value)
	}
	for name, value := range map[string]string{"limit": b.limit, "domain": b.domain} {
		if value != "" {
			query.Set(name, value)
		}
	}
	answer := node.Get(cmd.Context(), "/v1/buckets", query)
	l := listedBuckets{&quotadv1.ListBucketsResponse{}}
	if err := answer.Message(l, "buckets"); err != nil {
		return err
	}
	return answer.Show(cmd.OutOrStdout(), output, l.print)
}

// listedBuckets is the API's answer, to be printed.
type listedBuckets struct{ *quotadv1.ListBucketsResponse }

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
		fmt.Fprintln(w, "There are more: name more of the key, or raise --buckets.")
	}
	return nil
}
