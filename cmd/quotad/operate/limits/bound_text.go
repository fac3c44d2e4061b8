package limits

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/base/held"
)

// What limits bound prints for people.

func (o owing) String() string {
	if o.AtMost == nil {
		return "none from the document alone: give --in-flight and --cost"
	}
	return fmt.Sprintf("%d, %s", *o.AtMost, o.Formula)
}

// ceiling says in words what a limit promises over all regions together.
func ceiling(l *policy.Limit) string {
	rate := fmt.Sprintf("%d per %s", l.Limit, policy.FormatWindow(l.Window))
	switch l.Algorithm {
	case policy.SlidingWindowCounter:
		return fmt.Sprintf("used in a window of %s + what still counts of the one before is never above %d", policy.FormatWindow(l.Window), l.Limit)
	case policy.SlidingWindowLog:
		return fmt.Sprintf("at most %d in any %s", l.Limit, policy.FormatWindow(l.Window))
	case policy.TokenBucket:
		return fmt.Sprintf("never more than one bucket of %d tokens, refilled with %s, admits",
			l.Burst, rate)
	case policy.LeakyBucket:
		return fmt.Sprintf("never more than %d wait, served at %s", l.Burst, rate)
	}
	if l.Period != "" {
		return fmt.Sprintf("at most %d in each calendar %s", l.Limit, l.Period.Words())
	}
	return fmt.Sprintf("at most %d in each window floor(t / %s)", l.Limit, policy.FormatWindow(l.Window))
}

func (b bounds) print(w io.Writer, a assumptions) error {
	for _, l := range b.Limits {
		fmt.Fprintf(w, "%s: %s, %d per %s, domain %s, key %s, match %s\n", l.Name, l.Algorithm,
			l.Limit, l.Window, l.Domain,
			strings.Join(l.Key, ","), conditions(l.Match))
		fmt.Fprintf(w, "ceiling: %s\n", l.Ceiling)
		if l.Home {
			fmt.Fprintln(w, "home mode: each key has a home region, whose fixed split is all of it; the others borrow from it")
		}
		if l.Reserve != "" {
			fmt.Fprintf(w, "local_reserve %s: of F each region keeps RESERVE out of its store; in formulas F and B are what is left in it\n", l.Reserve)
		}
		if l.Consistency == policy.Prefetch {
			fmt.Fprintf(w, "consistency prefetch: the nodes of a region ask for n * chunk at most, to hold for %s, "+
				"charged beforehand:\n  nothing is added to what is below; "+
				"what a node holds when it crashes is not admitted in that cell\n",
				show.Span(held.Life))
		}
		l.printDebt(w)
		if l.Shadow {
			fmt.Fprintln(w, "shadow: it denies nothing, so nothing below holds until shadow is false")
		}
		if err := b.printLimit(w, l); err != nil {
			return err
		}
	}
	rate := "the limit's own"
	if a.rate > 0 {
		rate = fmt.Sprint(a.rate)
	}
	debt := ""
	if a.inFlight > 0 {
		debt = fmt.Sprintf(", N = %d, C = %d", a.inFlight, a.cost)
	}
	_, err := fmt.Fprintf(w,
		"with n = %d, r = %s, d = %s, lag = %d, margin = %s%s\nF: a region's fixed split of the limit L; S: what it holds; l: its lending_limit; W: the window\ncell: how long units are lent for; quotad limits bound --help has the rest\n",
		a.nodes, rate, show.Span(a.clock), a.lag,
		show.Span(time.Duration(algorithms.ClockMargin)*time.Microsecond), debt)
	return err
}

// printDebt says what is charged above the ceiling of a limit that is charged always.
func (l boundedLimit) printDebt(w io.Writer) {
	if l.Debt == nil {
		return
	}
	inFlight, times := "", ""
	if l.AboveCeiling.AtMost != nil {
		inFlight = ": what was in flight there when it last ran out"
		times = ", in each region each time it runs out"
	}
	fmt.Fprintf(w, "charge always: what does not fit of a cost that is known afterwards is owed; the bounds hold if everybody asks first\n"+
		"  bound of one region's debt: %s%s\n  bound of what is charged above the ceiling: %s%s\n",
		l.Debt, inFlight, l.AboveCeiling, times)
	if l.keeps {
		fmt.Fprintln(w, "  KEEPS: what a region keeps although the limit is used up elsewhere")
	}
}

func (b bounds) printLimit(w io.Writer, l boundedLimit) error {
	t := show.Table(w)
	fmt.Fprint(t, "\nREGION\tFIXED SPLIT F")
	if l.Reserve != "" {
		fmt.Fprint(t, "\tRESERVE")
	}
	fmt.Fprint(t, "\tMAY LEND\tMAY HOLD S_max")
	if l.Algorithm.Bucket() {
		fmt.Fprint(t, "\tBURST B\tBURST AT MOST B_max")
	}
	if l.keeps {
		fmt.Fprint(t, "\tKEEPS")
	}
	if l.Consistency == policy.Prefetch {
		fmt.Fprint(t, "\tn * chunk")
	}
	fmt.Fprintln(t)
	for i, r := range b.regions {
		h := l.holdings[i]
		fmt.Fprintf(t, "%s\t%s", r, l.Entitlements[r])
		if l.Reserve != "" {
			fmt.Fprintf(t, "\t%d", h.Reserve)
		}
		fmt.Fprintf(t, "\t%d\t%d", h.Lends, h.Rights)
		if l.Algorithm.Bucket() {
			fmt.Fprintf(t, "\t%s\t%d", l.Bursts[r], h.MaxBurst)
		}
		if l.keeps {
			fmt.Fprintf(t, "\t%d", l.Holdings[r].Keeps)
		}
		if l.Consistency == policy.Prefetch {
			fmt.Fprintf(t, "\t%d", l.Holdings[r].Chunks)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = show.Table(w)
	fmt.Fprintln(t, "\nEXCESS\tWHEN\tAT MOST\tFORMULA")
	for _, e := range l.Excess {
		most := "none"
		if e.AtMost != nil {
			most = fmt.Sprint(*e.AtMost)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", e.Cause, e.When, most, e.Formula)
	}
	fmt.Fprintln(t)
	return t.Flush()
}
