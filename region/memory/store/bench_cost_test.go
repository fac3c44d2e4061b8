package store

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/quantity"
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

// figures are what one call of a load took in one slice, in microseconds.
type figures struct{ wall, script float64 }

// subject is a load with the bucket on whose copies its calls are made.
type subject struct {
	load
	kind  algorithms.Kind
	model *bucket       // nil: to be made
	cell  quantity.Cell // that it was made in
}

// slice makes the calls of a load on one copy of its model. If the calls do not end as they should,
// because a cell ended meanwhile or a bucket was refilled, it begins again with a new model.
func (s *subject) slice(st *stage) figures {
	for range 100 {
		if s.model == nil && s.bring != nil {
			model := st.bucket(s.kind, s.limit)
			s.bring(st, model)
			s.model, s.cell = &model, inspect(st.b, st.Store, model.id, model.terms).State.Cell
		}
		if f, well := s.try(st); well {
			return f
		}
		s.model = nil
	}
	st.b.Fatalf("%s, %s: in a hundred tries not one in which all calls ended as they should",
		s.name, s.kind)
	return figures{}
}

func (s *subject) try(st *stage) (figures, bool) {
	var on bucket
	if s.model != nil {
		on = st.copied(*s.model)
	}
	calls, micros := st.scripts()
	begun := time.Now()
	for n := range s.calls {
		if s.bring == nil {
			on = st.bucket(s.kind, s.limit)
		}
		cell, well := s.call(st, on, n+2)
		if !well || s.bring != nil && cell != s.cell {
			return figures{}, false
		}
	}
	wall := float64(time.Since(begun).Nanoseconds()) / 1000
	callsAfter, microsAfter := st.scripts()
	if callsAfter-calls != s.calls {
		return figures{}, false // the server had to be sent the script
	}
	units := float64(s.calls * s.units)
	return figures{wall / units, float64(microsAfter-micros) / units}, true
}

// time measures a load on one algorithm, in turns with a fixed window.
func (st *stage) time(b *testing.B, l load, kind algorithms.Kind) string {
	subject, reference := &subject{load: l, kind: kind},
		&subject{load: l, kind: algorithms.FixedWindow}
	subject.slice(st)
	reference.slice(st)
	var wall, script, ratio []float64
	for b.Loop() {
		f, r := subject.slice(st), reference.slice(st)
		wall, script, ratio = append(wall, f.wall), append(script, f.script),
			append(ratio, f.script/r.script)
	}
	b.ReportMetric(1000*median(wall), "ns/op")
	b.ReportMetric(median(script), "script-us/op")
	b.ReportMetric(median(ratio), "x-fixed-window")
	return fmt.Sprintf("%.1f (%.2f)", median(script), median(ratio))
}
