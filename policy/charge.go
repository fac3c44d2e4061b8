package policy

import (
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// Charge says which costs a limit is charged.
type Charge string

// Which costs a limit is charged.
const (
	// ChargeAdmitted: those of requests that it admits.
	ChargeAdmitted Charge = "admitted"
	// ChargeAlways: those that are reported afterwards, too, whole, whatever is left. What did not
	// fit is owed, and the limit admits nothing until that is covered.
	ChargeAlways Charge = "always"
)

const (
	// windowsOwed is how many limits a sliding_window_counter that is charged always can count exactly.
	windowsOwed = 4
	// usualDebt is how many limits a token_bucket may owe that does not say max_debt.
	usualDebt = 10
)

// Owes returns how many units a bucket of the limit may owe in each region, as far as a bound of its own
// says: of a token_bucket that is not charged always it is for what is settled above its charge.
func (l *Limit) Owes() quantity.Units {
	if l.Algorithm == TokenBucket && l.MaxDebt == 0 {
		return usualDebt * l.Limit
	}
	return l.MaxDebt
}

// Largest returns the largest amount that a bucket of the limit counts: its limit or its burst, or
// what is counted of it when it owes.
func (l *Limit) Largest() quantity.Units {
	if l.Charge == ChargeAlways && l.Algorithm == SlidingWindowCounter {
		return windowsOwed * l.Limit
	}
	return max(l.Limit, l.Burst, l.MaxDebt)
}

// readDebt reads how much the limit may owe, and checks which limits may be charged always.
func readDebt(o strictyaml.Object, l *Limit) {
	f, given := o.Field("max_debt")
	switch {
	case l.Charge == "" || l.Algorithm == "": // that is reported already
	case given && (l.Charge != ChargeAlways || l.Algorithm != TokenBucket):
		f.Fail(fmt.Sprintf("max_debt belongs to a %s with charge: %s", TokenBucket, ChargeAlways), "remove it")
	case given:
		l.MaxDebt = quantity.Units(f.Integer(1, MaxLimit))
	case l.Charge == ChargeAlways && l.Algorithm == TokenBucket && l.Limit > 0 && l.Window > 0:
		l.MaxDebt = usualDebtOf(l)
	}
	if l.Charge == ChargeAlways {
		checkCharge(o, l)
	}
}

// usualDebtOf returns the most that a token_bucket may owe that does not say it: ten limits, or as
// much as can be counted and refilled.
func usualDebtOf(l *Limit) quantity.Units {
	return min(usualDebt*l.Limit, maxExact(l.Algorithm, l.Window.Microseconds()))
}

// checkCharge refuses charge: always where units that are charged late would count wrongly.
func checkCharge(o strictyaml.Object, l *Limit) {
	always := fmt.Sprintf("charge: %s", ChargeAlways)
	refuse := func(problem, mend string) { o.At("charge").Fail(problem, mend) }
	window := l.Window.Microseconds()
	switch {
	case l.Algorithm == LeakyBucket:
		refuse("a leaky_bucket gives each request a turn, and a cost that is known afterwards had none",
			"remove charge, or use a token_bucket")
	case l.Consistency == Prefetch:
		refuse(fmt.Sprintf("nodes that hold units would admit from them while the limit owes (%s)", always),
			fmt.Sprintf("remove charge, or write consistency: %s", Exact))
	case l.Algorithm == SlidingWindowCounter && l.Limit > 0 && l.Window > 0 &&
		algorithms.Tick(l.Algorithm, l.Limit, window) != 0 && algorithms.Tick(l.Algorithm, l.Largest(), window) == 0:
		o.At("limit").Fail(fmt.Sprintf("%d is too large for %s, which counts up to four times the limit", l.Limit, always),
			fmt.Sprintf("write at most %d", maxExact(l.Algorithm, window)/windowsOwed))
	}
	f, given := o.Field("max_debt")
	if given && l.MaxDebt > 0 && l.Limit > 0 && l.Window > 0 && checkExact(f, l.MaxDebt, l) &&
		fillsLate(l.Limit, l.MaxDebt, l.Window) {
		f.Fail(fmt.Sprintf("%d takes over ten years to be covered with %d in %s", l.MaxDebt, l.Limit, FormatWindow(l.Window)),
			"write a smaller max_debt")
	}
}

// usualSettle returns how long a charge may be settled that does not say it: for a window, but for ten
// minutes at least and an hour at most.
func (l *Limit) usualSettle() time.Duration {
	return min(max(l.Window, 10*time.Minute), time.Hour)
}

// readSettle reads how long a charge may be settled; it returns 0 if it refuses the value.
func readSettle(v strictyaml.Value) time.Duration {
	text, _ := v.IsText()
	within, ok := parseWindow(text)
	switch {
	case !ok:
		v.Fail(v.Describe()+" is not a duration", "write it like 10s, 1m, 1h or 24h")
	case within < MinSettle || within > MaxSettle:
		v.Fail(v.Describe()+" is out of range", "write a duration from 1s to 24h")
	default:
		return within.Truncate(time.Microsecond)
	}
	return 0
}

// keepsWhileOwing warns that a region that owes does not have all of the others stop.
func keepsWhileOwing(s source) []Warning {
	if s.Charge != ChargeAlways || s.entitled() < 2 || s.Home() || s.LendingLimit == PPMOne {
		return nil
	}
	return s.warning("charge", fmt.Sprintf("what one region owes is covered by the others but for what they do not lend: each admits that part of its split, %s of it, although the limit is used up",
		PPMOne-s.LendingLimit), "write lending_limit: 1, or leave it as it is where that much more may be used")
}
