// Package invalid says what is wrong with what a caller sent.
package invalid

import "fmt"

// Field is the error of a request of which a field is wrong. It says which one, and how to correct it.
type Field struct {
	Within  string // the message that contains the field: empty, or such as requests[3].
	Name    string
	Problem string
}

func (f *Field) Error() string { return f.Within + f.Name + ": " + f.Problem }

// Fieldf returns a Field with a problem that is made as fmt.Sprintf makes it.
func Fieldf(name, format string, args ...any) *Field {
	return &Field{Name: name, Problem: fmt.Sprintf(format, args...)}
}
