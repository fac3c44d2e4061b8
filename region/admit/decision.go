package admit

import (
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Request asks whether something may be served.
type Request struct {
	Domain      string
	Descriptors map[string]string
	Cost        int64 // units, 1 to 2^51
	// ID names the request for a caller that may send it twice: admitted once, it is for a minute answered as it was,
	// Config.Repeats times, and not charged again; beyond them it is a request without an id. Whoever is limited must
	// not choose it. Empty: no such memory.
	ID      string
	Receipt bool // give a receipt, with which the charge can be refunded
	// Caller says whose request it is, such as a host: where many wait for the store, callers have the same share of it.
	Caller string
}

// Reason says why a decision is what it is.
type Reason string

// The reasons.
const (
	WithinLimit           Reason = "within_limit"
	NoLimit               Reason = "no_limit"                // no limit applies to the request
	OverLimit             Reason = "over_limit"              // the rights held here are used up
	ExceedsRegionCapacity Reason = "exceeds_region_capacity" // the cost is above this region's entitlement
	Never                 Reason = "never"                   // the cost is above the limit
	Recovering            Reason = "recovering"              // the store lost data: what was used before it may fill the limit
	QueueFull             Reason = "queue_full"              // the store has no time for the request before its deadline
	StoreFailure          Reason = "store_failure"           // the store did not answer and the limit says deny
	StoreFailureLocal     Reason = "store_failure_local"     // decided without the store, by this node's part
	StoreFailureAllowed   Reason = "store_failure_allowed"   // the store did not answer and the limit says allow
)

// Decision answers a Request.
type Decision struct {
	Allowed     bool
	Reason      Reason
	Limit       string // name of the limit that decided: one that denies, else the one with least remaining
	Algorithm   algorithms.Kind
	LimitUnits  int64
	Window      time.Duration
	Remaining   int64
	ResetAfter  time.Duration // until the cell ends
	RetryAfter  time.Duration // denied: when the request is admitted if nothing else happens; negative: not on the entitlement alone
	Cell        int64         // number of the cell it was decided in; 0 if no store decided
	At          int64         // the store's time, microseconds since 1970; 0 if no store decided
	Node        string
	Region      string
	Entitlement int64
	Share       int64
	Degraded    bool
	Sequence    uint64   // number of the decision at this node, from 1
	Shadowed    []string // shadow limits that would have denied

	Delay   time.Duration // admitted by a leaky_bucket: serve the request after this time
	Receipt string        // what Refund takes, if it was asked for and something was charged
	// Repeated: decided before, under its Request.ID; this is that decision, and nothing was charged. Whoever served the
	// request then does not serve it again.
	Repeated bool
}

// FieldError says which field of a request is wrong, and how to mend it.
type FieldError struct {
	Field   string
	Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Bounds of a request.
const (
	MaxDescriptors     = 16
	MaxNameBytes       = 128
	MaxValueBytes      = 256
	MaxIDBytes         = 128
	maxDomainBytes     = 63
	costRange          = "must be a whole number of units from 1 to 2251799813685248"
	descriptorsTooMany = "has too many entries; send at most 16"
)

// Validate says what is wrong with a request, if anything.
func (r Request) Validate() error {
	switch {
	case r.Domain == "":
		return &FieldError{"domain", "is missing; name the domain of the limits to check"}
	case len(r.Domain) > maxDomainBytes:
		return &FieldError{"domain", "is longer than 63 bytes"}
	case r.Cost < 1 || r.Cost > 1<<51:
		return &FieldError{"cost", costRange}
	case len(r.Descriptors) > MaxDescriptors:
		return &FieldError{"descriptors", descriptorsTooMany}
	}
	if len(r.ID) > MaxIDBytes {
		return &FieldError{"request_id", "is longer than 128 bytes; send a hash of it"}
	}
	for name, value := range r.Descriptors {
		if name == "" || len(name) > MaxNameBytes {
			return &FieldError{"descriptors", "has a name that is empty or longer than 128 bytes"}
		}
		if len(value) > MaxValueBytes {
			return &FieldError{"descriptors." + name, "is longer than 256 bytes; send a hash of it"}
		}
	}
	return nil
}
