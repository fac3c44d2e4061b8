package journal

import (
	"fmt"
	"runtime/debug"
)

// guarded runs fn and returns a panic in it as an error. bbolt answers many inconsistencies by
// panicking. It also maps its file, so a bad sector, or a file that someone else truncated, shows
// as a memory fault. That would otherwise end the process; guarded turns it into a panic first.
func guarded(fn func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p}
		}
	}()
	return fn()
}

// panicked is the error of a panic caught by guarded.
type panicked struct{ reason any }

func (p *panicked) Error() string {
	return fmt.Sprintf("reading or writing it panicked: %v", p.reason)
}
