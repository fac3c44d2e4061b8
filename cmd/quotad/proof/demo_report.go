package proof

import (
	"fmt"
	"strings"

	"github.com/quotad/quotad/chaos/play/world"
)

// end prints the report, in at most 80 columns.
func (s *screen) end(r world.Report) {
	s.drawn.Leave()
	s.phases(r)
	c := r.Ceiling
	fmt.Fprintf(s.out, "\nceiling: %d checks, at most %d admitted of %d, excess %d\n",
		c.CellsChecked, c.MaxAdmitted, c.Limit, c.MaxExcess)
	for _, f := range r.Failures {
		fmt.Fprintf(s.out, "broken: %s\n", f)
	}
	for _, missing := range r.NotShown {
		fmt.Fprintf(s.out, "not shown: %s\n", missing)
	}
	if len(r.NotShown) > 0 {
		for _, lacked := range r.Lacked {
			fmt.Fprintf(s.out, "the machine lacked %s\n", lacked)
		}
	}
	switch {
	case len(r.Failures) > 0:
		fmt.Fprintln(s.out, s.paint("31", "NOT OK")+": the promise is broken")
	case len(r.NotShown) > 0:
		fmt.Fprintln(s.out, s.paint("33", "NOT SHOWN")+
			": the ceiling held; try again when the machine is less busy")
	default:
		fmt.Fprintln(s.out, s.paint("32", "ok")+
			": the ceiling held, the cut region fell to its fixed split,\nshares came back")
	}
}

// phases prints a row for each phase.
func (s *screen) phases(r world.Report) {
	names := make([]string, len(r.Regions))
	for i, region := range r.Regions {
		names[i] = region.Name
	}
	fmt.Fprintf(s.out, "\nUnits of %s:\n\n%-9s %3s  %-14s  %-14s  %-14s %9s %7s\n",
		strings.Join(names, "/"), "phase", "s", "offered", "admitted", "share at end", "rebalance",
		"false")
	for _, p := range r.Phases {
		moved := "-"
		if p.RebalanceMS != nil {
			moved = fmt.Sprintf("%.0f ms", *p.RebalanceMS)
		}
		fmt.Fprintf(s.out, "%-9s %3.0f  %-14s  %-14s  %-14s %9s %6.2f%%\n", p.Name, p.Seconds,
			row(r, p.Offered), row(r, p.Admitted), row(r, p.ShareEnd), moved, 100*p.FalseDenialRate)
		var degraded []string
		for _, name := range names {
			if p.Degraded[name] > 0 {
				degraded = append(degraded, name)
			}
		}
		if len(degraded) > 0 {
			fmt.Fprintf(s.out, "%14s degraded: %s\n", "", s.paint("33", strings.Join(degraded, " ")))
		}
	}
}

// row returns one number for each region, in order.
func row(r world.Report, units map[string]int64) string {
	parts := make([]string, len(r.Regions))
	for i, region := range r.Regions {
		parts[i] = short(units[region.Name])
	}
	return strings.Join(parts, "/")
}

// short writes a number in at most four characters, if it is below ten million.
func short(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}
