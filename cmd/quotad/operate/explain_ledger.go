package operate

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// bucketName names a bucket, as JSON for the API.
type bucketName struct {
	Limit       string            `json:"limit"`
	Domain      string            `json:"domain"`
	Descriptors map[string]string `json:"descriptors"`
}

func (b *bucketName) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.Domain, "domain", "", "domain of the limit")
}

// read reads the arguments LIMIT NAME=VALUE...
func (b *bucketName) read(cmd *cobra.Command, args []string) (err error) {
	switch {
	case len(args) == 0:
		return exit.Usage(fmt.Errorf(
			"name a limit, as in %s account-minute --domain api account=42", cmd.CommandPath()))
	case strings.Contains(args[0], "="):
		return exit.Usage(fmt.Errorf(
			"%q is a descriptor; name the limit before it, as in %s account-minute --domain api account=42",
			args[0], cmd.CommandPath()))
	case b.Domain == "":
		return exit.Usage(errors.New(
			"--domain is missing; name the domain of the limit, such as --domain api"))
	}
	b.Limit = args[0]
	if b.Descriptors, err = readDescriptors(args[1:]); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// bucketQuery returns the query of a domain, if one is named, and descriptors.
func bucketQuery(domain string, descriptors map[string]string) url.Values {
	query := url.Values{}
	if domain != "" {
		query.Set("domain", domain)
	}
	for name, value := range descriptors {
		query.Set(name, value)
	}
	return query
}

// refusedBucket adds advice to the error if the node knows no such bucket.
func refusedBucket(answer remote.Answer, err error) error {
	if err != nil && answer.Code == http.StatusNotFound {
		err = fmt.Errorf("%w; compare limit, --domain and descriptors with quotad limits list, and --addr with the node's", err)
	}
	return err
}

// ledger is the API's answer, to be printed. Fields that the algorithm does not have are nil.
type ledger struct{ *quotadv1.BucketResponse }

// showLedger shows a bucket in the region of a node.
func showLedger(cmd *cobra.Command, node *remote.Node, bucket bucketName, args []string, output string) error {
	if err := bucket.read(cmd, args); err != nil {
		return err
	}
	if _, given := bucket.Descriptors["domain"]; given {
		return exit.Usage(errors.New(
			"a descriptor that is named domain cannot be asked for, because domain is that of the limit; name it otherwise in limits and requests"))
	}
	answer := node.Get(cmd.Context(), "/v1/buckets/"+url.PathEscape(bucket.Limit),
		bucketQuery(bucket.Domain, bucket.Descriptors))
	l := ledger{&quotadv1.BucketResponse{}}
	if err := answer.Message(l, "limit"); err != nil {
		return refusedBucket(answer, err)
	}
	return answer.Show(cmd.OutOrStdout(), output, l.print)
}

func (l ledger) print(w io.Writer) error {
	t := show.Table(w)
	show.Row(t, "limit", "%s: %s over all regions", l.Limit, show.Counted(int(l.LimitUnits), "unit"))
	show.Row(t, "algorithm", "%s", l.Algorithm)
	show.Row(t, "cell", "%d", l.Cell)
	show.Row(t, "fixed split", "%d", l.Entitlement)
	show.Row(t, "share", "%d", l.Share)
	show.Row(t, "next share", "%d", l.NextShare)
	show.Row(t, "used", "%s", l.use())
	show.Row(t, "free", "%d", l.Free)
	if l.Owed != nil {
		show.Row(t, "owes", "%d; the limit is charged always", *l.Owed)
	}
	if l.ClosedUntil != nil {
		show.Row(t, "CLOSED", "until %s: the region's store lost its data, and what was used before may still count",
			l.ClosedUntil.AsTime().Format(time.RFC3339))
	}
	if l.Burst != nil {
		show.Row(t, "burst", "%d, this region's part", *l.Burst)
	}
	if err := t.Flush(); err != nil || len(l.Rights) == 0 {
		return err
	}
	return l.printRights(w)
}

// use says how much counts as used, and how much of that expires by itself.
func (l ledger) use() string {
	if l.Fading == 0 {
		return fmt.Sprint(l.Used)
	}
	return fmt.Sprintf("%d, of which %d stop counting before the cell ends", l.Used, l.Fading)
}

func (l ledger) printRights(w io.Writer) error {
	t := show.Table(w)
	lendsBurst := l.Rights[0].BurstLent != nil
	fmt.Fprint(t, "\nREGION\tCELL\tLENT\tRETURNED\tBORROWED\tREGAINED")
	if lendsBurst {
		fmt.Fprint(t, "\tBURST LENT\tBURST BORROWED")
	}
	fmt.Fprintln(t)
	for _, r := range l.Rights {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d", show.Name(r.Region), r.Cell, r.Lent, r.Returned,
			r.Borrowed, r.Regained)
		if lendsBurst {
			fmt.Fprintf(t, "\t%d\t%d", r.GetBurstLent(), r.GetBurstBorrowed())
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
