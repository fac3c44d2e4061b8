package journal

import (
	"fmt"

	"github.com/quotad/quotad/quantity"
)

// Bounds of what a journal takes.
const (
	MaxBucketBytes  = 4 << 10 // of Row.Bucket and Checkpoint.Bucket
	MaxPeerBytes    = 255     // of Row.Peer, and of the names in Options
	MaxUnits        = 1 << 51 // of Row.Lent, Row.Returned, Row.Burst and Checkpoint.Used
	MaxRecordRows   = 4096    // rows in one call of Record
	MaxCheckpoints  = 4096    // checkpoints in one call of Checkpoint
	MaxCells        = 1000    // cells that one call of RowsOf may look at
	PruneLimit      = 4096    // records that one call of Prune looks at
	MaxAddresses    = 1024    // addresses RememberPeers takes
	MaxAddressBytes = 512     // of one such address
	MaxPolicyBytes  = 4 << 20 // of the source of one document
	MaxDocuments    = 64      // that SaveDocuments takes
)

// Row is what this region said to one peer region about one bucket and cell. Its numbers are
// cumulative and only ever raised. It has the same fields as exchange.Row, so the two convert into
// each other: neither package imports the other, because the protocol is pure and the journal knows
// no protocol.
type Row struct {
	Bucket string        // opaque id of the bucket: 1 to MaxBucketBytes bytes of any value
	Peer   string        // name of the peer region: 1 to MaxPeerBytes bytes
	Cell   quantity.Cell // number of the cell

	Lent     quantity.Units // R[self->peer][cell], units, 0 to MaxUnits
	Returned quantity.Units // Q[self->peer][cell], units, 0 to MaxUnits
	Burst    quantity.Units // Y[self->peer][cell], tokens, 0 to MaxUnits

	Generation uint64 // generation of this region's store when the row was written
	// Until is the store time, in microseconds since 1970, at which the row no longer weighs and
	// may be pruned.
	Until quantity.StoreTime
}

// rowID identifies a row; two rows with the same id are merged.
type rowID struct {
	cell   quantity.Cell
	bucket string
	peer   string
}

func (r Row) id() rowID { return rowID{r.Cell, r.Bucket, r.Peer} }

// raise merges two rows of one id: each number becomes the larger one. It is
// commutative, associative and idempotent, so that the order and repetition of
// records do not matter.
func (r Row) raise(other Row) Row {
	r.Lent = max(r.Lent, other.Lent)
	r.Returned = max(r.Returned, other.Returned)
	r.Burst = max(r.Burst, other.Burst)
	r.Generation = max(r.Generation, other.Generation)
	r.Until = max(r.Until, other.Until)
	return r
}

// validate returns the first reason why no journal takes the row.
func (r Row) validate() error {
	if err := checkBucket(r.Bucket); err != nil {
		return err
	}
	switch {
	case len(r.Peer) == 0 || len(r.Peer) > MaxPeerBytes:
		return fmt.Errorf("the peer's name has %d bytes, not 1 to %d", len(r.Peer), MaxPeerBytes)
	case r.Lent < 0 || r.Lent > MaxUnits:
		return fmt.Errorf("lent is %d, not 0 to %d", r.Lent, int64(MaxUnits))
	case r.Returned < 0 || r.Returned > MaxUnits:
		return fmt.Errorf("returned is %d, not 0 to %d", r.Returned, int64(MaxUnits))
	case r.Burst < 0 || r.Burst > MaxUnits:
		return fmt.Errorf("burst is %d, not 0 to %d", r.Burst, int64(MaxUnits))
	}
	return nil
}

// checkBucket returns an error for an id that cannot be a bucket's.
func checkBucket(id string) error {
	if len(id) == 0 || len(id) > MaxBucketBytes {
		return fmt.Errorf("the bucket id has %d bytes, not 1 to %d", len(id), MaxBucketBytes)
	}
	return nil
}

// validateRows refuses a call of Record as a whole, before anything is written.
func validateRows(rows []Row) error {
	if len(rows) > MaxRecordRows {
		return fmt.Errorf("journal: record: %w: %d rows in one call, more than %d: split them",
			ErrInvalid, len(rows), MaxRecordRows)
	}
	for i, r := range rows {
		if err := r.validate(); err != nil {
			return fmt.Errorf("journal: record: %w: row %d of %d (bucket %.64q, peer %.64q, cell %d): %w: "+
				"nothing was written, correct the caller",
				ErrInvalid, i+1, len(rows), r.Bucket, r.Peer, r.Cell, err)
		}
	}
	return nil
}

// validateRange refuses a call of RowsOf with too many cells.
func validateRange(bucket string, from, to quantity.Cell) error {
	if err := checkBucket(bucket); err != nil {
		return fmt.Errorf("journal: rows of a bucket: %w: %w: correct the caller", ErrInvalid, err)
	}
	// As unsigned numbers their difference cannot overflow.
	if to < from || uint64(to)-uint64(from) >= MaxCells {
		return fmt.Errorf("journal: rows of a bucket: %w: cells %d to %d are not 1 to %d cells: "+
			"ask for those in force, in steps if need be",
			ErrInvalid, from, to, MaxCells)
	}
	return nil
}

// validateAddresses refuses a list of peers that no journal takes.
func validateAddresses(addresses []string) error {
	if len(addresses) > MaxAddresses {
		return fmt.Errorf("journal: remember peers: %w: %d addresses, more than %d: keep fewer",
			ErrInvalid, len(addresses), MaxAddresses)
	}
	for i, a := range addresses {
		if len(a) == 0 || len(a) > MaxAddressBytes {
			return fmt.Errorf("journal: remember peers: %w: "+
				"address %d of %d (%.64q) has %d bytes, not 1 to %d: leave it out",
				ErrInvalid, i+1, len(addresses), a, len(a), MaxAddressBytes)
		}
	}
	return nil
}

// validateDocuments refuses documents that no journal takes.
func validateDocuments(all []Document) error {
	if len(all) > MaxDocuments {
		return fmt.Errorf("journal: save documents: %w: %d of them, more than %d", ErrInvalid,
			len(all), MaxDocuments)
	}
	for _, d := range all {
		if len(d.Source) > MaxPolicyBytes {
			return fmt.Errorf("journal: save documents: %w: version %d has %d bytes, more than %d: "+
				"split the document",
				ErrInvalid, d.Version, len(d.Source), MaxPolicyBytes)
		}
	}
	return nil
}

// validateWholeSince refuses a time that no store can show.
func validateWholeSince(t quantity.StoreTime) error {
	if t < 0 {
		return fmt.Errorf("journal: set whole since: %w: %d is before 1970: "+
			"give 0 for since ever, correct the caller", ErrInvalid, t)
	}
	return nil
}

// validateGeneration refuses a generation lower than the one kept.
func validateGeneration(kept, next uint64) error {
	if next < kept {
		return fmt.Errorf("journal: set generation: %w: from %d to %d: "+
			"the store answered with an older identity than this node has seen; recover the region's store",
			ErrGeneration, kept, next)
	}
	return nil
}
