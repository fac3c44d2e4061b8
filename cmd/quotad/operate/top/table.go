package top

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/front/view"
)

// Print writes a report as tables.
func (r Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s  %s", r.At.UTC().Format(time.TimeOnly+"Z"), show.Counted(r.Nodes, "node"))
	if len(r.Silent) > 0 {
		fmt.Fprintf(w, ", NO ANSWER OF %s", strings.Join(show.Names(r.Silent), " "))
	}
	fmt.Fprint(w, "\n\n")
	t := show.Table(w)
	fmt.Fprint(t, "LIMIT\tALLOWS\tADMITTED/S\tDENIED/S")
	for _, region := range r.Regions {
		fmt.Fprintf(t, "\t%s", show.Name(region))
	}
	fmt.Fprintln(t)
	for _, l := range r.Limits {
		fmt.Fprintf(t, "%s\t%d per %s\t%.1f\t%.1f", show.Name(l.Limit), l.Units,
			policy.FormatWindow(time.Duration(l.Window*float64(time.Second))), l.Admitted, l.Denied)
		for _, region := range r.Regions {
			fmt.Fprintf(t, "\t%.1f", l.Regions[region])
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = show.Table(w)
	fmt.Fprint(t, "BUCKET\tLIMIT\tADMITTED\tDENIED\tUSED\tOF")
	for _, region := range r.Regions {
		fmt.Fprintf(t, "\t%s", show.Name(region))
	}
	fmt.Fprintln(t)
	for _, b := range r.Buckets {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d", show.Name(view.Words(b.Descriptors)),
			show.Name(b.Limit), b.AdmittedUnits, b.DeniedUnits, b.Used, b.LimitUnits)
		for _, region := range r.Regions {
			fmt.Fprintf(t, "\t%s", used(b, region))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// used writes what a region has used of what it holds of a bucket.
func used(b Bucket, region string) string {
	for _, p := range b.Parts {
		if p.Region == region {
			return fmt.Sprintf("%d/%d", p.Used, p.Share)
		}
	}
	return "-"
}
