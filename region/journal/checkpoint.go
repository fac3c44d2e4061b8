package journal

import (
	"cmp"
	"fmt"
)

// Checkpoint says how much the store had counted of one bucket and cell when a node looked. A store
// that lost everything starts from there instead of from zero.
type Checkpoint struct {
	Bucket string // opaque id of the bucket: 1 to MaxBucketBytes bytes of any value
	Cell   int64  // number of the cell

	Used int64 // used[k], units, 0 to MaxUnits
	At   int64 // when it was seen, microseconds of store time since 1970
	// Until is when the checkpoint no longer weighs and may be pruned, in
	// microseconds of store time since 1970.
	Until      int64
	Generation uint64 // of the store it was seen in
}

// checkpointID says which checkpoint it is; two with one id are merged.
type checkpointID struct {
	bucket string
	cell   int64
}

func (c Checkpoint) id() checkpointID { return checkpointID{c.Bucket, c.Cell} }

// merge returns the newer of two checkpoints of one id, by Generation and then
// At, whole. It is commutative, associative and idempotent, so that the order
// and repetition of calls do not matter.
//
// Used is no row: refunds and a reset lower it, so the larger number may be one
// that was taken back, and only the newest is true. Generation comes before At
// because the store of a later generation may run on a clock that is behind,
// and because what it counts began with what recovery gave it. Of two numbers
// seen in one microsecond nobody can tell which came first; the larger is
// taken, against the caller. Until is the later of both: a checkpoint kept too
// long costs its bytes, one pruned too early its units.
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

// validate reports the first thing about the checkpoint that no journal takes.
func (c Checkpoint) validate() error {
	if err := checkBucket(c.Bucket); err != nil {
		return err
	}
	if c.Used < 0 || c.Used > MaxUnits {
		return fmt.Errorf("used is %d, not 0 to %d", c.Used, int64(MaxUnits))
	}
	return nil
}

// validateBucket refuses a question about an id that is no bucket's.
func validateBucket(id string) error {
	if err := checkBucket(id); err != nil {
		return fmt.Errorf("journal: checkpoints of a bucket: %w: %w: correct the caller", ErrInvalid, err)
	}
	return nil
}

// validateCheckpoints refuses a call of Checkpoint as a whole, before anything
// is written.
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
