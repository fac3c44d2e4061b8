// Package exit has quotad's exit codes, and errors that carry one.
package exit

import (
	"errors"
	"fmt"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/strictyaml"
)

// The exit codes are the same for every command.
const (
	OK          = 0
	Failed      = 1
	BadUsage    = 2 // usage, or an invalid configuration or policy
	Broken      = 3 // the promise was broken
	Denied      = 4
	NotAnswered = 5 // no node answered
	NotShown    = 6 // the promise held, and the machine was too busy to show the rest
)

// coded is an error with its exit code. A silent one is not printed, because all has been said.
type coded struct {
	code   int
	silent bool
	err    error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// Usage marks an error of the command line, of the settings or of a document.
func Usage(err error) error { return &coded{code: BadUsage, err: err} }

// Invalid marks an error of a file, and adds the number of problems to correct.
func Invalid(path string, err error) error {
	if problems, ok := errors.AsType[strictyaml.Errors](err); ok {
		err = fmt.Errorf("%s is not valid: mend %s and try again\n%w",
			path, show.Counted(len(problems), "problem"), err)
	}
	return Usage(err)
}

// Unreachable marks an error of a node that does not answer.
func Unreachable(err error) error { return &coded{code: NotAnswered, err: err} }

// Silently returns an error with an exit code that is not printed.
func Silently(code int) error {
	return &coded{code: code, silent: true, err: fmt.Errorf("exit code %d", code)}
}

// Of returns the exit code of an error, and whether to print the error.
func Of(err error) (code int, tell bool) {
	var c *coded
	switch {
	case err == nil:
		return OK, false
	case errors.As(err, &c):
		return c.code, !c.silent
	}
	return Failed, true
}
