package limits

import (
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/policy"
)

// standardInput is what a command line says for standard input where it names a document. It is
// read as files are: up to the same size, and a program that writes it has 10 s.
const standardInput = "-"

// Load reads the limits document that an argument names.
func Load(arg string) (*policy.Document, error) {
	path := Path(arg)
	d, err := policy.Load(path)
	if err != nil {
		return nil, exit.Invalid(path, err)
	}
	return d, nil
}

// Path returns the path of an argument's document, as messages have it.
func Path(arg string) string {
	if arg == standardInput {
		return "/dev/stdin"
	}
	return arg
}
