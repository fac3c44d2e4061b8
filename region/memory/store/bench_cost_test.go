package store

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"text/tabwriter"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
)

// BenchmarkCost measures, on a redis-server, what each algorithm costs it: the time of its scripts
// under loads, and the memory of a bucket. Times on a shared machine say little, so each is also
// given as a ratio to that of a fixed window under the same load, measured in turns with it. At the
// end all is printed as one table.
func BenchmarkCost(b *testing.B) {
	t := table{}
	st := &stage{b: b, Store: node(b, fixtures.Process(b), first)}
	for _, l := range loads {
		for _, kind := range algorithms.Kinds {
			if l.suits(kind) {
				b.Run(l.name+"/"+string(kind),
					func(b *testing.B) { t.note("us, "+l.name, kind, st.with(b).time(b, l, kind)) })
			}
		}
	}
	for _, s := range sizes {
		for _, kind := range algorithms.Kinds {
			if s.suits(kind) {
				b.Run(s.name+"/"+string(kind),
					func(b *testing.B) {
						t.note("bytes, "+s.name, kind, st.with(b).size(b, s, kind))
					})
			}
		}
	}
	t.print()
}

// only restricts a measurement to some algorithms; empty: all.
type only []algorithms.Kind

func (o only) suits(kind algorithms.Kind) bool { return len(o) == 0 || slices.Contains(o, kind) }

// table has a line for each thing measured and a column for each algorithm.
type table struct {
	lines []string
	cells map[string]string
}

func (t *table) note(line string, kind algorithms.Kind, figure string) {
	if figure == "" { // a benchmark that failed
		return
	}
	if !slices.Contains(t.lines, line) {
		t.lines = append(t.lines, line)
	}
	if t.cells == nil {
		t.cells = map[string]string{}
	}
	t.cells[line+"/"+string(kind)] = figure
}

// print writes the table to standard output, where benchmarks write their lines.
func (t *table) print() {
	if len(t.lines) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nmedians; in brackets the ratio to fixed_window, in turns with it\n\t")
	for _, kind := range algorithms.Kinds {
		fmt.Fprint(w, kind, "\t")
	}
	for _, line := range t.lines {
		fmt.Fprintf(w, "\n%s\t", line)
		for _, kind := range algorithms.Kinds {
			fmt.Fprintf(w, "%s\t", t.cells[line+"/"+string(kind)])
		}
	}
	fmt.Fprint(w, "\n\n")
	w.Flush()
}
