package callers

import (
	"fmt"
	"net/http"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/wire"
)

// Decision is admit.Decision as JSON. A value that was not counted or is not known is absent, not
// 0.
type Decision struct {
	Allowed bool         `json:"allowed"`
	Reason  admit.Reason `json:"reason"`

	// Absent if no limit applies.
	Limit       string          `json:"limit,omitempty"`
	Algorithm   string          `json:"algorithm,omitempty"`
	LimitUnits  *quantity.Units `json:"limit_units,omitempty"`
	Unit        string          `json:"unit,omitempty"` // absent if the limit does not say it
	Entitlement *quantity.Units `json:"entitlement,omitempty"`

	// Absent if neither the store nor this node counted.
	Remaining  *quantity.Units      `json:"remaining,omitempty"`
	ResetAfter *asjson.Milliseconds `json:"reset_after_ms,omitempty"`

	// Class is the request's class under the limit, and Kept is what is free beside Remaining, for
	// classes with a larger part; absent where there is none.
	Class string         `json:"class,omitempty"`
	Kept  quantity.Units `json:"kept,omitempty"`

	// Absent if allowed, if the request is never admitted, and if the time is not known.
	RetryAfter *asjson.Milliseconds `json:"retry_after_ms,omitempty"`

	// Owed is what did not fit of a cost that was reported, and charged all the same; absent if
	// nothing.
	Owed quantity.Units `json:"owed,omitempty"`

	// Absent if the request may be served at once. Only a leaky_bucket makes requests wait for
	// their turn.
	Delay *asjson.Milliseconds `json:"delay_ms,omitempty"`

	// Absent if no store decided.
	Cell  *quantity.Cell  `json:"cell,omitempty"`
	Share *quantity.Units `json:"share,omitempty"`
	At    string          `json:"at,omitempty"`

	Node     string   `json:"node"`
	Region   string   `json:"region"`
	Degraded bool     `json:"degraded"`
	Sequence uint64   `json:"sequence"`
	Shadowed []string `json:"shadowed,omitempty"` // absent if empty
	Repeated bool     `json:"repeated,omitempty"` // absent if not
	// Receipt is absent if not asked for, and if no store charged anything.
	Receipt string `json:"receipt,omitempty"`
	// Undecided says that the node had no time for a request of a batch, and neither admitted nor
	// denied it; absent if it was decided.
	Undecided bool `json:"undecided,omitempty"`
	// Problem says what is wrong with a request of a batch; absent if nothing is.
	Problem string `json:"problem,omitempty"`
	// FromMemory says that the node decided without asking the store; absent if it asked.
	FromMemory bool `json:"from_memory,omitempty"`
	// Epoch is that of the limits document that was in force.
	Epoch string `json:"epoch,omitempty"`
	// Limits has every limit that applied; absent unless there were several.
	Limits []LimitState `json:"limits,omitempty"`
}

// LimitState is admit.LimitState as JSON.
type LimitState struct {
	Limit      string              `json:"limit"`
	Algorithm  algorithms.Kind     `json:"algorithm"`
	LimitUnits quantity.Units      `json:"limit_units"`
	Unit       string              `json:"unit,omitempty"` // absent if the limit does not say it
	Window     asjson.Milliseconds `json:"window_ms"`
	Admits     bool                `json:"admits"`
	Shadow     bool                `json:"shadow,omitempty"`
	// Absent if neither the store nor this node counted.
	Remaining  *quantity.Units      `json:"remaining,omitempty"`
	ResetAfter *asjson.Milliseconds `json:"reset_after_ms,omitempty"`
	// Absent if the limit admits, never admits, or the time is not known.
	RetryAfter  *asjson.Milliseconds `json:"retry_after_ms,omitempty"`
	Entitlement quantity.Units       `json:"entitlement"`
	Share       quantity.Units       `json:"share"`
	Degraded    bool                 `json:"degraded,omitempty"`
	Owed        quantity.Units       `json:"owed,omitempty"` // as Decision.Owed
	Class       string               `json:"class,omitempty"`
	Kept        quantity.Units       `json:"kept,omitempty"`
}

func newLimitStates(all []admit.LimitState) (states []LimitState) {
	if len(all) < 2 {
		return nil
	}
	for _, s := range all {
		j := LimitState{Limit: s.Limit, Algorithm: s.Algorithm, LimitUnits: s.LimitUnits,
			Unit: s.Unit, Window: asjson.Milliseconds(s.Window), Admits: s.Admits, Shadow: s.Shadow,
			Entitlement: s.Entitlement, Share: s.Share, Degraded: s.Degraded, Owed: s.Owed,
			Class: s.Class, Kept: s.Kept}
		if s.Counted {
			j.Remaining, j.ResetAfter = &s.Remaining, (*asjson.Milliseconds)(&s.ResetAfter)
		}
		if s.RetryAfter > 0 {
			j.RetryAfter = (*asjson.Milliseconds)(&s.RetryAfter)
		}
		states = append(states, j)
	}
	return states
}

const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

func newDecision(d admit.Decision) *Decision {
	j := &Decision{Allowed: d.Allowed, Reason: d.Reason, Limit: d.Limit,
		Algorithm: string(d.Algorithm), Unit: d.Unit, Node: d.Node, Region: d.Region,
		Degraded: d.Degraded, Sequence: d.Sequence, Shadowed: d.Shadowed, Repeated: d.Repeated,
		Receipt: d.Receipt, Problem: wire.Complaint(d), Undecided: d.Undecided,
		FromMemory: d.FromMemory, Owed: d.Owed, Class: d.Class, Kept: d.Kept, Epoch: d.Epoch, Limits: newLimitStates(d.Limits)}
	if d.Limit != "" {
		j.LimitUnits, j.Entitlement = &d.LimitUnits, &d.Entitlement
	}
	if counted(d) {
		j.Remaining, j.ResetAfter = &d.Remaining, (*asjson.Milliseconds)(&d.ResetAfter)
	}
	if d.RetryAfter > 0 {
		j.RetryAfter = (*asjson.Milliseconds)(&d.RetryAfter)
	}
	if d.Delay > 0 {
		j.Delay = (*asjson.Milliseconds)(&d.Delay)
	}
	if d.At != 0 {
		j.Cell, j.Share, j.At = &d.Cell, &d.Share,
			time.UnixMicro(int64(d.At)).UTC().Format(timeLayout)
	}
	return j
}

// counted reports whether a decision is based on a count, made by the store or by this node.
func counted(d admit.Decision) bool {
	return d.At != 0 || d.Reason == admit.StoreFailureLocal
}

// The types of denials, of draft-ietf-httpapi-ratelimit-headers-11.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// denials says of each reason why a request is denied.
var denials = map[admit.Reason]string{
	admit.NoLimit:               "no limit applies to the request, or no limit's match names the value of one of its descriptors, and its domain says to deny then (on_no_limit: deny)",
	admit.OverLimit:             "what this region has left of the limit is less than the cost",
	admit.ExceedsRegionCapacity: "the cost is above what this region can hold of the limit, with all that others may lend",
	admit.Never:                 "the cost is above the limit",
	admit.Denied:                "the limits document denies what the request describes",
	admit.Recovering:            "the region's store lost its data, and what was used before may fill the limit",
	admit.StoreFailure:          "the region's store did not answer or is not used, and the limit says to deny then (on_store_failure: deny)",
	admit.StoreFailureLocal:     "the region's store does not answer or is not used, and this node's part of the limit is used up",
}

// denied is the problem of a denied request, with the members of the decision.
type denied struct {
	wire.Problem
	// Violated names the limits that deny, as RateLimit-Policy does.
	Violated []string `json:"violated-policies,omitempty"`
	*Decision
}

// denial returns the problem of a denied request: 429, or 503 because the store failed. A region
// has reduced capacity while its store fails, or while it has its fixed split alone because it
// cannot reach another region of the limit.
func denial(d admit.Decision) denied {
	p := wire.NewProblem(http.StatusTooManyRequests, detail(d))
	switch d.Reason {
	case admit.StoreFailure:
		p.Status = http.StatusServiceUnavailable
		p.Type, p.Title = reducedCapacity, "Temporary Reduced Capacity"
	case admit.StoreFailureLocal, admit.Recovering:
		p.Type, p.Title = reducedCapacity, "Temporary Reduced Capacity"
	case admit.OverLimit, admit.ExceedsRegionCapacity, admit.Never:
		p.Type, p.Title = quotaExceeded, "Quota Exceeded"
		if d.Degraded && d.Reason != admit.Never {
			p.Type, p.Title = reducedCapacity, "Temporary Reduced Capacity"
			p.Detail += ", and another region of the limit cannot be reached, so that this one has its fixed split alone"
		}
	}
	return denied{p, violated(d), newDecision(d)}
}

// detail says why a request is denied: where units are free, what its class has to do with it.
func detail(d admit.Decision) string {
	if d.Class == "" {
		return denials[d.Reason]
	}
	switch {
	case d.Reason == admit.OverLimit && d.Kept > 0:
		return fmt.Sprintf("class %s has used its part of what this region has of the limit; %d units are left, kept for classes with a larger part", d.Class, d.Kept)
	case d.Reason == admit.StoreFailureLocal && d.Kept > 0:
		return fmt.Sprintf("%s for class %s; %d units are left, kept for classes with a larger part", denials[d.Reason], d.Class, d.Kept)
	case d.Reason == admit.ExceedsRegionCapacity:
		return fmt.Sprintf("the cost is above what class %s may use of what this region has of the limit by itself", d.Class)
	case d.Reason == admit.Never:
		return fmt.Sprintf("the cost is above what class %s may use of the limit", d.Class)
	}
	return denials[d.Reason]
}

func violated(d admit.Decision) (names []string) {
	for _, s := range d.Limits {
		if !s.Admits && !s.Shadow {
			names = append(names, s.Limit)
		}
	}
	if len(names) == 0 && d.Limit != "" {
		names = []string{d.Limit}
	}
	return names
}
