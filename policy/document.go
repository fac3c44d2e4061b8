package policy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// The ranges of a document. Units stay at or below 2^51, because they and twice their value must be
// exact in a Redis script, whose numbers are doubles. Amounts that an algorithm multiplies by its
// window have a smaller maximum, which depends on the window; see [algorithms.Tick].
const (
	MaxDocumentBytes = 1 << 20
	MaxVersion       = 1 << 51
	MaxRegions       = 64
	MaxRemoved       = 256
	MaxReturned      = 1_000_000
	MaxWeight        = 1_000_000
	MaxNameBytes     = 63
	MaxAliasBytes    = 128
	MaxKeyNames      = 8
	MaxConditions    = 8
	MaxConditionText = 256 // bytes of a value to match on
	MaxLimit         = algorithms.MaxUnits
	// largest limit of a sliding_window_log, whose memory grows with it
	MaxLogLimit = algorithms.MaxLog
	MaxBurst    = algorithms.MaxUnits
	MinWindow   = 10 * time.Millisecond
	MinSettle   = time.Second
	MaxSettle   = 24 * time.Hour
	MaxWindow   = 366 * 24 * time.Hour
)

// Document is a limits document that passed every check. It never changes after [Parse], so any
// number of goroutines may use it.
type Document struct {
	// Version is the operator's number for this document, from 1 to MaxVersion.
	Version int64
	// Regions holds 1 to MaxRegions regions, sorted by name.
	Regions []Region
	// Fenced holds the regions that an operator has declared stopped, sorted; see
	// [Document.Fences].
	Fenced []string
	// Removed holds the regions of older documents that are gone for good, sorted; see
	// [Document.Removes].
	Removed []string
	// Returned holds how often fenced regions have returned, 1 to MaxReturned, of those that have;
	// see [Document.Life].
	Returned map[string]int64
	// Limits holds the entries in the order of the file, at least one.
	Limits []Limit
	// Exempt holds what limits do not apply to.
	Exempt []Exemption
	// OnNoLimit is for domains for which Domains has no other.
	OnNoLimit OnNoLimit
	// Domains holds the rules of single domains, sorted by name; see [Document.Domain].
	Domains []DomainRules

	// Kept is not nil if this is no document, but what is kept of folded ones. It has no Limits then.
	Kept *Kept

	epoch    Epoch
	source   []byte
	warnings []Warning
}

// Replaces reports whether some limit or exemption replaces limits.
func (d *Document) Replaces() bool {
	return slices.ContainsFunc(d.Limits, func(l Limit) bool { return len(l.Replaces) > 0 }) ||
		slices.ContainsFunc(d.Exempt, func(e Exemption) bool { return len(e.Replaces) > 0 })
}

// Source returns the text the document was parsed from, byte for byte. Parsing it again gives a
// document of the same epoch. The text itself is not part of the epoch. The caller must not modify
// it.
func (d *Document) Source() []byte { return d.source }

// Region is a region of the document and its weight in the split of every limit
// that gives no weights of its own.
type Region struct {
	Name   string
	Weight int64 // 1 to MaxWeight
}

// Limit is one entry of the document.
//
// Several entries may have one name in one domain. They are one limit with several terms. They
// agree on key, algorithm and window, and may differ in everything else. Of the entries that match
// a request, the one with the most conditions is in force. Each entry counts for itself, in buckets
// of its own, so an account that changes its plan inside a window starts a new count.
type Limit struct {
	// Index is the place of the entry in Document.Limits.
	Index int
	// Pos is where the entry starts in its file. It does not change the meaning of the entry.
	Pos strictyaml.Position

	Name   string
	Domain string
	// Key holds the names of the descriptors whose values make the key: 1 to
	// MaxKeyNames different names, in the order of the file.
	Key []string
	// Match holds the conditions, sorted by name, at most MaxConditions.
	Match []Condition
	// Entries is the path of a limit that applies to descriptors of exactly these entries, in their
	// order: at most MaxEntries. Key and Match follow from it. It is nil for a limit that applies
	// to requests that have its key and meet its conditions, whatever else they have.
	Entries   []Entry
	Algorithm Algorithm
	// Limit is the number of units that all regions together may admit in a window, 1 to MaxLimit.
	// For token_bucket and leaky_bucket it is a rate, in units a window.
	Limit quantity.Units
	// Window is a whole number of microseconds, MinWindow to MaxWindow. Of a Period it is the usual
	// length.
	Window time.Duration
	// Period says which windows a FixedWindow has that counts by the calendar. Empty: windows of
	// one length, Window, counted from 1970.
	Period Period
	// Burst is a number over all regions, 1 to MaxBurst: the tokens that a token_bucket holds, or
	// the units that may wait or be in service in a leaky_bucket. It is Limit if the entry gives
	// none, and 0 for the other algorithms.
	Burst quantity.Units
	// Weights is parallel to Document.Regions: the limit's own weights, or else those of the
	// regions, and 0 for a fenced region. At least one is above zero.
	Weights []quantity.Units
	// BorrowingLimit is the most that a region may borrow in a cell, as a fraction of its own
	// entitlement, or Unlimited.
	BorrowingLimit PPM
	// LendingLimit is the most a region may lend in a cell, as a fraction of its
	// own entitlement, 0 to PPMOne.
	LendingLimit   PPM
	OnExhausted    OnExhausted // see Limit.Borrows
	OnStoreFailure OnStoreFailure
	// LocalReserve is the fraction of each region's entitlement that stays out of its store, for
	// nodes that cannot use the store, 0 to PPMOne. It is above 0 only with StoreFailureLocal.
	// Reserve returns the fraction in force.
	LocalReserve PPM
	// Shadow says that decisions are made and reported but not enforced.
	Shadow bool
	// Alias is the name by which Envoy is told of the limit, and by which Replaces names it.
	// Several limits may have one. It is Name if the entry gives none.
	Alias string
	// Replaces holds the aliases of limits that do not apply to a request to which this one does.
	Replaces []string
	// Metadata is what Envoy is told where the limit lets a descriptor pass; nil: nothing.
	Metadata *Metadata
	// Alternative says that the limit denies a request only if all alternative limits do that apply
	// to it.
	Alternative bool
	// Consistency is Prefetch only for a FixedWindow or SlidingWindowCounter that is no shadow.
	Consistency Consistency
	// Charge is ChargeAlways never for a LeakyBucket, with Prefetch or with Assign.
	Charge Charge
	// MaxDebt is how many units a TokenBucket that is charged always may owe in each region; 0 for
	// other limits. What is charged beyond is forgiven.
	MaxDebt quantity.Units
	// Unit says what is counted, such as tokens. Callers are told. Empty: it is not said.
	Unit string
	// SettleWithin is how long after a decision its charge may be settled by what was used (package
	// receipts), MinSettle to MaxSettle.
	SettleWithin time.Duration
	// Classes says which requests go first; nil: none. Never with a LeakyBucket, Prefetch, Assign
	// or Home.
	Classes *Classes
	// Assign says how Envoys may be assigned parts of the limit; nil: they may not.
	Assign *Assign

	deniesAtOnce bool // on_exhausted: deny was written

	id idText // made by Parse of the fields above
	// keyPlaces holds the place in Entries of each name of Key.
	keyPlaces []int
}

// Condition requires that a request carries a descriptor with exactly this value.
type Condition struct {
	Name  string
	Value string
}

// OnExhausted says what a region does with a request for which it has no rights left.
type OnExhausted string

// What to do when a region's rights are used up.
const (
	// ExhaustedDeny denies at once.
	ExhaustedDeny OnExhausted = "deny"
	// ExhaustedBorrow first asks other regions for rights, within the request.
	ExhaustedBorrow OnExhausted = "borrow"
)

// OnStoreFailure says what a node does while its region's store cannot be used.
type OnStoreFailure string

// What to do when the store cannot be used.
const (
	// StoreFailureLocal admits up to the node's part of the region's entitlement.
	StoreFailureLocal OnStoreFailure = "local"
	// StoreFailureAllow admits everything: no bound holds.
	StoreFailureAllow OnStoreFailure = "allow"
	// StoreFailureDeny denies everything.
	StoreFailureDeny OnStoreFailure = "deny"
)

// Consistency says how exactly a region's nodes share a bucket.
type Consistency string

// How exactly a region's nodes share a bucket.
const (
	// Exact: the store decides each request.
	Exact Consistency = "exact"
	// Prefetch: a node may hold a small part of the bucket's units, which the store was charged
	// with beforehand. The limit holds as with Exact. What a node holds is not there for the
	// others, so requests can be denied although some units are left.
	Prefetch Consistency = "prefetch"
)

// RegionIndex returns the place of a region in Regions, and so in every
// Limit.Weights.
func (d *Document) RegionIndex(name string) (int, bool) {
	return slices.BinarySearchFunc(d.Regions, name, func(r Region, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// RegionNames returns the names of Regions.
func (d *Document) RegionNames() []string {
	names := make([]string, len(d.Regions))
	for i, r := range d.Regions {
		names[i] = r.Name
	}
	return names
}

// Load reads and parses the document in a file. The error is an [strictyaml.Errors] when
// the file could be read but the document is invalid.
func Load(path string) (*Document, error) {
	src, err := files.Read(path, MaxDocumentBytes)
	if err != nil && !errors.Is(err, files.ErrTooLarge) { // Parse reports those
		return nil, readError(err)
	}
	return Parse(path, src)
}

func readError(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("read limits document: %w; check the path, or write the document there",
			err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("read limits document: %w; let the user quotad runs as read it", err)
	default:
		return fmt.Errorf("read limits document: %w; check that the path names a readable file",
			err)
	}
}
