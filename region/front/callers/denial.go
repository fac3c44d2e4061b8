package callers

import (
	"net/http"

	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

// The types of denials, of draft-ietf-httpapi-ratelimit-headers-10.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// denials says of each reason why a request is denied.
var denials = map[admit.Reason]string{
	admit.NoLimit:               "no limit applies to the request, or no limit's match names the value of one of its descriptors, and its domain says to deny then (on_no_limit: deny)",
	admit.OverLimit:             "what this region has of the limit is used up",
	admit.ExceedsRegionCapacity: "the cost is above what this region has of the limit by itself",
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
	p := wire.NewProblem(http.StatusTooManyRequests, denials[d.Reason])
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

// newProblemOf returns a problem with another status.
func newProblemOf(p wire.Problem, code int) wire.Problem {
	own := wire.NewProblem(code, p.Detail)
	own.Field = p.Field
	return own
}
