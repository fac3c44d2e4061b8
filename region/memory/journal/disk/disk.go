// Package disk is the seam below a journal: the four calls through which package journal reaches
// whatever keeps its records. A node keeps them in a bbolt file (region/memory/journal), a simulation in a
// map (chaos/lab). The package imports nothing, so that neither has to import the other.
package disk

import "errors"

// Disk keeps records. A record is a key and a value that is not empty. It lies in one of the Parts.
// Get and Scan may be called at any time, Commit by one caller at a time, Close once.
//
// The journal does not use a Disk again after an error, except to close it.
type Disk interface {
	// Get returns the value of each key, nil if there is no record. All values are of one moment.
	// The caller does not change them.
	Get(part Part, keys ...[]byte) ([][]byte, error)
	// Scan shows records to visit, in the order of their keys, beginning with the first key that is
	// not below from. All are of one moment. Scan returns the error of visit, but nil for ErrStop.
	Scan(part Part, from []byte, visit Visit) error
	// Commit makes all changes or none, and returns nil once they are durable. No two changes have
	// the same key. After an error it is unknown whether they were made. The Disk may keep the
	// slices of a Change: the caller does not write to them any more.
	Commit(changes []Change) error
	Close() error
}

// Part names a table of records. Each has keys of its own.
type Part string

// The parts. Those of State are small and change with most commits; those of Saved are large and
// change seldom.
const (
	State       Part = "state"
	Saved       Part = "saved"
	Rows        Part = "rows"
	Checkpoints Part = "checkpoints"
)

// Parts returns all parts.
func Parts() []Part { return []Part{State, Saved, Rows, Checkpoints} }

// Visit looks at one record. It returns the key at which the Scan goes on, which must be above the
// key it was shown, or nil for the next record. It may read key and value until it returns. It does
// not call the Disk.
type Visit func(key, value []byte) (next []byte, err error)

// ErrStop, returned by a Visit, ends the Scan without an error.
var ErrStop = errors.New("the scan ends here")

// Change is what a commit does to one record, or to a part.
type Change struct {
	Part  Part
	Key   []byte // nil removes the part with all its records; then it is not used any more
	Value []byte // nil removes the record, if there is one
}
