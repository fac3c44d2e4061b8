package admit

import (
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
)

// Request asks whether a unit of work may be served.
type Request struct {
	Domain      string
	Descriptors map[string]string
	Cost        quantity.Units // units, 1 to 2^51
	// Question says that the request asks whether a use may begin whose cost is known only afterwards,
	// when Report charges it. Nothing is charged. A limit that says charge: always borrows for it, if it
	// borrows at all, and counts it as demand if it denies.
	Question bool
	// Lists holds lists of descriptors, in place of Descriptors and Cost. Such a request has
	// neither an ID nor a receipt.
	Lists []List
	// replaced holds aliases of limits that do not apply, because of the lists with which these
	// came.
	replaced []string
	// ID names the request, for a caller that may send it twice. For a minute after it was
	// admitted, the same request gets the same decision and is not charged again. That happens
	// algorithms.Repeats times at most. After that it is decided as a request without an id.
	// The party that is limited must not choose the id. Empty: the request is not remembered.
	ID      string
	Receipt bool // whether the decision should carry a receipt, for settling the charge
	// Wait is how long the request waits for its turn, unless its context ends before. 0:
	// Config.Wait.
	Wait time.Duration
	// Caller names the sender of the request, such as a host. When many requests wait for the
	// store, all callers get equal turns.
	Caller string
	others bool // see Report
	// Unread says why a request of a batch could not be read. Validate returns it. nil: it was
	// read.
	Unread *invalid.Field
}

// Reason says why a decision is as it is.
type Reason string

// The reasons.
const (
	WithinLimit Reason = "within_limit"
	NoLimit     Reason = "no_limit" // no limit applies to the request
	// OverLimit: the rights that this region holds are used up.
	OverLimit Reason = "over_limit"
	// ExceedsRegionCapacity: the cost is above what this region can hold, with all that others may lend.
	ExceedsRegionCapacity Reason = "exceeds_region_capacity"
	Never                 Reason = "never" // the cost is above the limit
	// Denied: the limits document denies what the request describes, whatever limits say.
	Denied Reason = "denied"
	// Recovering: the store lost data, and earlier use may fill the limit.
	Recovering Reason = "recovering"
	// QueueFull: the store has no time for the request before its caller gives up. It is not decided.
	QueueFull Reason = "queue_full"
	// StoreFailure: the store did not answer and the limit says deny.
	StoreFailure Reason = "store_failure"
	// StoreFailureLocal: decided without the store, from this node's part.
	StoreFailureLocal Reason = "store_failure_local"
	// StoreFailureAllowed: the store did not answer and the limit says allow.
	StoreFailureAllowed Reason = "store_failure_allowed"
	// InvalidRequest: a request of a batch is wrong, as Decision.Problem says. Nothing was charged.
	InvalidRequest Reason = "invalid_request"
)

// Decision answers a Request.
type Decision struct {
	Allowed    bool
	Reason     Reason
	Limit      string // the limit that decided: one that denies, else the one with least remaining
	Algorithm  algorithms.Kind
	LimitUnits quantity.Units
	Window     time.Duration
	Unit       string // policy.Limit.Unit
	// Remaining is what still fits after the request: of a limit with classes, of the request's
	// class.
	Remaining quantity.Units
	// Class is the class that the request has under Limit; empty: none. Kept is how many units are
	// free beside Remaining, kept for classes that may use a larger part.
	Class string
	Kept  quantity.Units
	// ResetAfter is the time after which the bucket is whole again if nothing else happens: nothing
	// used counts any more. 0: it is whole. Without the store, until the limit's window ends.
	ResetAfter time.Duration
	// RetryAfter is when a denied request may come again: when this region's rights suffice if
	// nothing else happens or, if that is sooner, when units may be here that other regions hold.
	// Where nobody knows (Recovering, StoreFailureLocal, a region that does not answer) it is a
	// minute at most. Negative: this region's rights never suffice.
	RetryAfter time.Duration
	// number of the cell in which it was decided; 0 if no store decided
	Cell quantity.Cell
	// the store's time, microseconds since 1970; 0 if no store decided
	At          quantity.StoreTime
	Node        string
	Region      string
	Entitlement quantity.Units
	Share       quantity.Units
	Degraded    bool
	Sequence    uint64   // number of the decision at this node since its start, from 1
	Shadowed    []string // shadow limits that would have denied
	Epoch       string   // of the limits document that was in force
	// Limits holds every limit that applied, if there are several or the request has Lists.
	Limits []LimitState
	// Met holds what each of the request's Lists met.
	Met []Met

	// Owed is what did not fit of a cost that was charged all the same (Report), the most of any limit.
	Owed    quantity.Units
	Delay   time.Duration // admitted by a leaky_bucket: serve the request after this time
	Receipt string        // for Receipts.Settle; empty if not asked for or nothing was charged
	// Repeated says that this decision was made before, under the same Request.ID, and that nothing
	// was charged now. A server that served the request the first time should not serve it again.
	Repeated bool
	// Undecided says that the request was neither admitted nor denied, because the store had no time
	// for it before its caller gives up: only of a request of a batch, as a single one gets an
	// *Overload.
	Undecided bool
	// Problem says what is wrong with the request if Reason is InvalidRequest; else nil.
	Problem *invalid.Field
	// FromMemory says that the node decided without asking the store, by a denial that it remembers
	// or units that the store was charged with beforehand. At is then what the store's clock should
	// show, or a little less.
	FromMemory bool

	opens time.Duration // of one that is Recovering: when the bucket is opened, if nothing else happens
}

// TooManyLimits is the invalid.Field of a request that meets more limits than one script call decides.
type TooManyLimits struct{ *invalid.Field }

// Unwrap returns the invalid.Field.
func (e TooManyLimits) Unwrap() error { return e.Field }

// Bounds of a request.
const (
	MaxDescriptors = 16
	MaxNameBytes   = 128
	MaxValueBytes  = 256
	MaxIDBytes     = 128
	// MaxListedBytes bounds a value in a list. It may be longer than that of a map, because proxies
	// make lists of what their clients send, and let pass what is answered with an error. A bucket
	// has the digest of a long value.
	MaxListedBytes     = 64 << 10
	maxDomainBytes     = 63
	costRange          = "must be a whole number of units from 1 to 2251799813685248"
	descriptorsTooMany = "has too many entries; send at most 16"
)

// Validate returns an *invalid.Field for the first problem of a request, nil if there is none.
func (r Request) Validate() error {
	switch {
	case r.Unread != nil:
		return r.Unread
	case r.Domain == "":
		return invalid.Fieldf("domain", "is missing; name the domain of the limits to check")
	case len(r.Domain) > maxDomainBytes:
		return invalid.Fieldf("domain", "is longer than 63 bytes")
	case r.Lists != nil:
		return r.validateLists()
	case r.Cost < 1 || r.Cost > 1<<51:
		return invalid.Fieldf("cost", costRange)
	case r.Question && (r.ID != "" || r.Receipt):
		return invalid.Fieldf("question", "asks and charges nothing; leave out request_id and receipt")
	case len(r.Descriptors) > MaxDescriptors:
		return invalid.Fieldf("descriptors", descriptorsTooMany)
	}
	if len(r.ID) > MaxIDBytes {
		return invalid.Fieldf("request_id", "is longer than 128 bytes; send a hash of it")
	}
	for name, value := range r.Descriptors {
		if name == "" || len(name) > MaxNameBytes {
			return invalid.Fieldf("descriptors", "has a name that is empty or longer than 128 bytes")
		}
		if len(value) > MaxValueBytes {
			return invalid.Fieldf("descriptors."+name, "is longer than 256 bytes; send a hash of it")
		}
	}
	return nil
}

// validateLists returns an *invalid.Field for the first problem of a request with lists, nil if there
// is none.
func (r Request) validateLists() error {
	switch {
	case len(r.Lists) == 0:
		return invalid.Fieldf("descriptors", "is empty; send at least one")
	case len(r.Lists) > MaxLists:
		return invalid.Fieldf("descriptors", "has %d descriptors; send at most %d",
			len(r.Lists), MaxLists)
	case r.Descriptors != nil || r.ID != "" || r.Receipt:
		return invalid.Fieldf("descriptors", "come as lists, for which there are no request ids and no receipts")
	}
	for i, list := range r.Lists {
		field := fmt.Sprintf("descriptors[%d]", i)
		switch {
		case len(list.Entries) == 0:
			return invalid.Fieldf(field, "has no entries; send at least one")
		case len(list.Entries) > MaxDescriptors:
			return invalid.Fieldf(field, descriptorsTooMany)
		case list.Cost < 0 || list.Cost > 1<<51:
			return invalid.Fieldf(field+".hits_addend", "must be a whole number of units from 0 to 2251799813685248")
		}
		for n, e := range list.Entries {
			field := fmt.Sprintf("%s.entries[%d]", field, n)
			if e.Name == "" || len(e.Name) > MaxNameBytes {
				return invalid.Fieldf(field+".key", "is empty or longer than 128 bytes")
			}
			if len(e.Value) > MaxListedBytes {
				return invalid.Fieldf(field+".value", "is longer than 65536 bytes")
			}
		}
	}
	return nil
}
