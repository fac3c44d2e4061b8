package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

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
