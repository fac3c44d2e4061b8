package policy

import (
	"errors"
	"fmt"
)

// MaxStep bounds by how much the version of a document is above that of the newest one, without an
// operator's word, so that nobody reaches the last version by a slip.
const MaxStep = 1 << 32

// ErrFar says that the version rises by more than MaxStep.
var ErrFar = errors.New("the version rises by more than 4294967296, and no later one may be below it: correct it, or apply the document once with quotad limits apply --yes")

// CheckStep fails with ErrFar if the version of a document is more than MaxStep above that of the
// newest one.
func CheckStep(newest, d *Document) error {
	if d.Version-newest.Version > MaxStep {
		return fmt.Errorf("document %s is not taken, %s is open: %w", d.Epoch(), newest.Epoch(), ErrFar)
	}
	return nil
}
