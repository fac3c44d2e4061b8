// Package exit has the codes that quotad ends with, and errors that carry one.
package exit

import (
	"errors"
	"fmt"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/strictyaml"
)

// The codes, the same for every command.
const (
	OK          = 0
	Failed      = 1
	BadUsage    = 2 // usage, or an invalid configuration or policy
	Broken      = 3 // the promise was broken
	Denied      = 4
	NotAnswered = 5 // no node answered
)

// coded is an error with the exit code it calls for. A silent one has said all there is to say.
type coded struct {
	code   int
	silent bool
	err    error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// Usage marks an error of the command line, of the settings or of a document.
func Usage(err error) error { return &coded{code: BadUsage, err: err} }

// Invalid marks what is wrong with a file, with how many problems there are to mend.
func Invalid(path string, err error) error {
	if problems, ok := errors.AsType[strictyaml.Errors](err); ok {
		err = fmt.Errorf("%s is not valid: mend %s and try again\n%w",
			path, show.Counted(len(problems), "problem"), err)
	}
	return Usage(err)
}

// Unreachable marks an error of a node that does not answer.
func Unreachable(err error) error { return &coded{code: NotAnswered, err: err} }

// Silently ends with a code and without a message.
func Silently(code int) error {
	return &coded{code: code, silent: true, err: fmt.Errorf("exit code %d", code)}
}

// Of returns the code that an error calls for, and whether it is to be told.
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
