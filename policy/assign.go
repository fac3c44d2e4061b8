package policy

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// Assign says that Envoys may be assigned parts of a limit, to enforce them without asking for each
// request (Envoy's rate limit quota service, RLQS). Only a TokenBucket has it, whose cells are then
// AssignCell long, and a FixedWindow of MinAssignWindow or more.
type Assign struct {
	// TTL is the longest time to live of an assignment: whole seconds, MinAssignTTL to
	// MaxAssignTTL.
	TTL time.Duration
	// NoAssignment is the units a window that all Envoys together admit while they have no
	// assignment: what is configured in them. The regions' stores share Limit less this.
	NoAssignment quantity.Units
	// MaxBurst is the most tokens that all Envoys together hold. Of a TokenBucket the regions'
	// stores share Burst less this. Of a FixedWindow tokens are units of the window, as all that
	// Envoys admit.
	MaxBurst quantity.Units
}

const (
	// AssignCell is the length of the cells of a limit with assign. Envoys report every 5 s, so
	// rights that end sooner could not be assigned.
	AssignCell = 10 * time.Second
	// MinAssignWindow is the shortest FixedWindow of which parts are assigned. An Envoy holds what
	// it is assigned of a window for some ten seconds, which must be a small part of it.
	MinAssignWindow = time.Minute
	// MinAssignTTL and MaxAssignTTL bound Assign.TTL. An assignment must outlast a report that is
	// lost, and end before the rights of two cells do.
	MinAssignTTL     = 6 * time.Second
	MaxAssignTTL     = 15 * time.Second
	defaultAssignTTL = 10 * time.Second
	// AssignSettles is how long Envoys may still hold more tokens than a document allows that all
	// nodes of their region know. A node applies it to a bucket with an Envoy's next report. It
	// sends nothing to Envoys that have not reported for 11 s. What it sent before that ends
	// MaxAssignTTL and a second later.
	AssignSettles = 30 * time.Second
)

// Shared returns how many units a window, and how much burst, the stores of all regions share.
func (l *Limit) Shared() (limit, burst quantity.Units) {
	if l.Assign == nil {
		return l.Limit, l.Burst
	}
	return l.Limit - l.Assign.NoAssignment, l.Burst - l.EnvoyBurst()
}

// EnvoyBurst returns how many tokens Envoys hold beside the regions' stores.
func (l *Limit) EnvoyBurst() quantity.Units {
	if l.Assign == nil || l.Algorithm != TokenBucket {
		return 0
	}
	return l.Assign.MaxBurst
}

var assignFields = []string{"ttl", "no_assignment", "max_burst"}

const mendAssign = "write assign: {ttl: 10s}, or assign: {} for the defaults"

// readAssign reads the section of a limit of which Envoys may be assigned parts.
func readAssign(f strictyaml.Value, l *Limit) {
	o, ok := f.Object(mendAssign, assignFields)
	if !ok || l.Algorithm == "" || l.Limit == 0 || l.Window == 0 {
		return // what is missing is reported already
	}
	if problem, mend := l.unassignable(); problem != "" {
		f.Fail(problem, mend)
		return
	}
	before := f.Failures()
	a := &Assign{TTL: strictyaml.Optional(o, "ttl", defaultAssignTTL, readAssignTTL)}
	a.NoAssignment = strictyaml.Optional(o, "no_assignment", 0, strictyaml.Whole[quantity.Units](0, MaxLimit))
	a.MaxBurst = max(l.ofASecond(), quantity.Units(l.entitled()))
	if l.Algorithm == TokenBucket {
		a.MaxBurst = max(min(l.Burst/2, l.ofASecond()), 1)
	}
	a.MaxBurst = strictyaml.Optional(o, "max_burst", a.MaxBurst, strictyaml.Whole[quantity.Units](1, MaxBurst))
	if l.Assign = a; f.Failures() == before {
		checkAssign(f, l)
	}
}

// ofASecond returns the units of a second, rounded up.
func (l *Limit) ofASecond() quantity.Units {
	window := uint64(l.Window.Microseconds())
	hi, lo := bits.Mul64(uint64(l.Limit), uint64(time.Second.Microseconds()))
	units, rest := bits.Div64(hi, lo, window) // hi < 2^8, and a window has 10,000 us at least
	if rest > 0 {
		units++
	}
	return quantity.Units(units)
}

// unassignable returns why Envoys cannot be assigned parts of a limit, and what to do. Empty: they
// can.
func (l *Limit) unassignable() (problem, mend string) {
	const remove = "remove assign, and have Envoy ask for each request (RLS)"
	switch {
	case l.Algorithm == FixedWindow && l.Window < MinAssignWindow:
		return fmt.Sprintf("an Envoy holds what it is assigned for some ten seconds, too large a part of a window of %s", FormatWindow(l.Window)),
			fmt.Sprintf("use a window of %s or more, a token_bucket, or %s", FormatWindow(MinAssignWindow), remove)
	case l.Algorithm != TokenBucket && l.Algorithm != FixedWindow:
		return fmt.Sprintf("Envoy enforces a token bucket, which cannot keep a %s", l.Algorithm),
			"use a token_bucket, or " + remove
	case l.Shadow:
		return "Envoy enforces what it is assigned, so a shadow limit cannot be assigned", "remove assign, or shadow"
	case l.Alternative:
		return "an alternative limit is judged together with others, which an Envoy alone cannot do", "remove assign, or alternative"
	case l.Charge == ChargeAlways:
		return "an Envoy that admits by itself knows nothing of what the limit owes", "remove assign, or charge"
	case l.Classes != nil:
		return "an Envoy that admits by itself knows nothing of a request's class", "remove assign, or classes"
	case len(l.Entries) > 1:
		return "a bucket id of Envoy has no order, and entries have one", "write key and match in place of entries"
	case l.LocalReserve > 0:
		return "a limit is shared with Envoys or with nodes that cannot reach their store, not with both", "remove assign, or local_reserve"
	}
	return "", ""
}

func readAssignTTL(f strictyaml.Value) time.Duration {
	ttl := readWindow(f)
	if ttl != 0 && (ttl < MinAssignTTL || ttl > MaxAssignTTL || ttl%time.Second != 0) {
		f.Fail(fmt.Sprintf("%s is no time to live of an assignment", FormatWindow(ttl)),
			fmt.Sprintf("write whole seconds, from %s to %s", FormatWindow(MinAssignTTL), FormatWindow(MaxAssignTTL)))
	}
	return ttl
}

// checkAssign checks that enough is left for the regions' stores, and that each region can tell an
// Envoy a whole token a second.
func checkAssign(f strictyaml.Value, l *Limit) {
	regions := max(l.entitled(), 1)
	limit, burst := l.Shared()
	switch seconds := quantity.Units((l.Window + time.Second - 1) / time.Second); {
	case l.Assign.MaxBurst < regions:
		f.Fail(fmt.Sprintf("a max_burst of %d is less than a token for each of %d regions", l.Assign.MaxBurst, regions),
			"write a larger max_burst")
	case l.Algorithm == FixedWindow:
		checkAssignWindow(f, l, limit, regions)
	case burst < 2*regions:
		f.Fail(fmt.Sprintf("a burst of %d less a max_burst of %d leaves the stores less than two tokens for each of %d regions", l.Burst, l.Assign.MaxBurst, regions),
			"write a larger burst, or a smaller max_burst")
	case limit < seconds*regions || limit < 2*regions:
		f.Fail(fmt.Sprintf("%d in %s that the stores share is less than a unit a second for each of %d regions, and Envoy counts whole tokens a second", max(limit, 0), FormatWindow(l.Window), regions),
			"write a larger limit, or remove assign")
	case fillsLate(limit, l.Burst, l.Window):
		f.Fail(fmt.Sprintf("a burst of %d takes over ten years to fill with the %d in %s that the stores share",
			l.Burst, limit, FormatWindow(l.Window)), "write a smaller no_assignment, or a smaller burst")
	}
}

// checkAssignWindow checks that each region can assign an Envoy a token a second of a fixed window
// for a time to live: the node holds its units beforehand, and one more for the burst.
func checkAssignWindow(f strictyaml.Value, l *Limit, limit, regions quantity.Units) {
	least := quantity.Units(l.Assign.TTL/time.Second) + 2
	if limit < least*regions {
		f.Fail(fmt.Sprintf("%d in %s that the stores share is less than an assignment of a token a second for %s, %d units, for each of %d regions",
			max(limit, 0), FormatWindow(l.Window), FormatWindow(l.Assign.TTL), least, regions), "write a larger limit, or remove assign")
	}
}

// unassigned warns of regions whose weight is so small that Envoys there can be assigned nothing.
func unassigned(s source) []Warning {
	if s.Assign == nil {
		return nil
	}
	sum, least := quantity.Units(0), quantity.Units(0)
	for _, w := range s.Weights {
		if sum += w; w > 0 && (least == 0 || w < least) {
			least = w
		}
	}
	enough := (sum-1)/least + 1
	if s.Assign.MaxBurst >= enough {
		return nil
	}
	return s.warning("assign", fmt.Sprintf("a region with a weight of %d of %d gets less than a token "+
		"of a max_burst of %d: for most keys its Envoys are assigned nothing", least, sum,
		s.Assign.MaxBurst), fmt.Sprintf("write a max_burst of at least %d, or a larger weight", enough))
}
