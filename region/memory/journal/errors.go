package journal

import (
	"errors"
	"fmt"
)

// The kinds of error this package returns, to be tested with errors.Is. The
// error itself names the file, the cause and the next step.
var (
	// ErrClosed is returned by every call that needs the file after Close.
	ErrClosed = errors.New("the journal is closed")
	// ErrFailed is returned by every call that needs the file once a commit
	// failed, or a record turned out unreadable, while it was open.
	ErrFailed = errors.New("the journal failed")
	// ErrInUse is returned by Open while another process has the file open.
	ErrInUse = errors.New("the journal is in use")
	// ErrForeign is returned by Open for the journal of another region or node.
	ErrForeign = errors.New("the journal is another node's")
	// ErrSchema is returned by Open for a file of an unknown schema version.
	ErrSchema = errors.New("the journal's schema is unknown")
	// ErrDamaged is returned by Open for a file that is not whole.
	ErrDamaged = errors.New("the journal is damaged")
	// ErrInvalid is returned for an argument out of its range; nothing is written.
	ErrInvalid = errors.New("invalid argument")
	// ErrGeneration is returned for a generation lower than the one kept.
	ErrGeneration = errors.New("the generation would go back")
)

// damaged wraps the finding of a check of the file at path.
func damaged(path string, finding error) error {
	return fmt.Errorf("journal %s: %w: %w; move the file aside (keep it for inspection) and restart: "+
		"the node makes a new journal and its region learns its rows from its peers "+
		"and other nodes, as after a loss",
		path, ErrDamaged, finding)
}

// failed wraps the first error of a journal that must not be trusted any more.
func failed(path string, cause error) error {
	return fmt.Errorf("journal %s: %w and takes nothing more, because it is unknown what reached "+
		"the disk: %w; "+
		"check the disk's free space and health, then restart the node, which reads back what is there",
		path, ErrFailed, cause)
}

// closed returns the error of every call after Close.
func closed(path string) error {
	return fmt.Errorf("journal %s: %w: open it again to use it", path, ErrClosed)
}
