package proof

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/cmd/quotad/proof/rehearsal"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// listScenarios shows the scenarios that quotad brings along.
func listScenarios(w io.Writer, output string) error {
	all, err := rehearsal.Shipped()
	if err != nil {
		return err
	}
	listed := listedScenarios(all)
	return show.Result(w, output, listed, func(w io.Writer) error { return printScenarios(w, listed) })
}

// listedScenario is one entry of the list.
type listedScenario struct {
	Name     string `json:"name"`
	Rows     []int  `json:"rows"`
	Duration string `json:"duration"`
	About    string `json:"about"`
}

func listedScenarios(all []*scenario.Scenario) []listedScenario {
	listed := make([]listedScenario, len(all))
	for i, s := range all {
		listed[i] = listedScenario{Name: s.Name, Rows: append([]int{}, s.Rows...),
			Duration: show.Span(s.Duration), About: s.About}
	}
	return listed
}

func printScenarios(w io.Writer, all []listedScenario) error {
	t := show.Table(w)
	fmt.Fprintln(t, "NAME\tFAULTS\tDURATION\tABOUT")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, rowsOf(s.Rows), s.Duration, s.About)
	}
	return t.Flush()
}

// rowsOf returns the numbers of fault matrix rows as text, such as 1, 8.
func rowsOf(rows []int) string {
	return cmp.Or(strings.Trim(strings.ReplaceAll(fmt.Sprint(rows), " ", ", "), "[]"), "-")
}
