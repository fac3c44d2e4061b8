package journal

import (
	"cmp"
	"fmt"

	"github.com/quotad/quotad/quantity"
)

// Checkpoint is how much the store had counted of one bucket and cell when a node looked. A store
// that lost everything starts from there instead of from zero.
type Checkpoint struct {
	Bucket string        // opaque id of the bucket: 1 to MaxBucketBytes bytes of any value
	Cell   quantity.Cell // number of the cell

	Used quantity.Units     // used[k], units, 0 to MaxUnits
	At   quantity.StoreTime // store time at which it was seen, microseconds since 1970
	// Until is the store time, in microseconds since 1970, at which the checkpoint no longer weighs
	// and may be pruned.
	Until      quantity.StoreTime
	Generation uint64 // generation of the store it was seen in
}

// checkpointID identifies a checkpoint; two with the same id are merged.
type checkpointID struct {
	bucket string
	cell   quantity.Cell
}

func (c Checkpoint) id() checkpointID { return checkpointID{c.Bucket, c.Cell} }

// merge returns the newer of two checkpoints of one id, by Generation and then At, as a whole. It
// is commutative, associative and idempotent, so that the order and repetition of calls do not
// matter.
//
// Used does not rise like a row: units given back and a reset lower it, so the larger number may have been
// taken back, and only the newest is true. Generation comes before At because the store of a later
// generation may run on a clock that is behind, and because what it counts began with what recovery
// gave it. Of two numbers seen in one microsecond nobody can tell which came first; merge takes the
// larger, against the caller. Until is the later of both: a checkpoint kept too long costs its
// bytes, one pruned too early its units.
func (c Checkpoint) merge(other Checkpoint) Checkpoint {
	newest := c
	if cmp.Or(
		cmp.Compare(c.Generation, other.Generation),
		cmp.Compare(c.At, other.At),
		cmp.Compare(c.Used, other.Used),
	) < 0 {
		newest = other
	}
	newest.Until = max(c.Until, other.Until)
	return newest
}

// validate returns the first reason why no journal takes the checkpoint.
func (c Checkpoint) validate() error {
	if err := checkBucket(c.Bucket); err != nil {
		return err
	}
	if c.Used < 0 || c.Used > MaxUnits {
		return fmt.Errorf("used is %d, not 0 to %d", c.Used, int64(MaxUnits))
	}
	return nil
}

// validateBucket returns ErrInvalid for an id that cannot be a bucket's.
func validateBucket(id string) error {
	if err := checkBucket(id); err != nil {
		return fmt.Errorf("journal: checkpoints of a bucket: %w: %w: correct the caller",
			ErrInvalid, err)
	}
	return nil
}

// validateCheckpoints refuses a call of Checkpoint as a whole, before anything is written.
func validateCheckpoints(checkpoints []Checkpoint) error {
	if len(checkpoints) > MaxCheckpoints {
		return fmt.Errorf("journal: checkpoint: %w: %d checkpoints in one call, more than %d: "+
			"split them", ErrInvalid, len(checkpoints), MaxCheckpoints)
	}
	for i, c := range checkpoints {
		if err := c.validate(); err != nil {
			return fmt.Errorf("journal: checkpoint: %w: checkpoint %d of %d (bucket %.64q, cell %d): %w: "+
				"nothing was written, correct the caller",
				ErrInvalid, i+1, len(checkpoints), c.Bucket, c.Cell, err)
		}
	}
	return nil
}
